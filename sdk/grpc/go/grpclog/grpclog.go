// Package grpclog has the logger of programs that use gRPC. What it is told goes to standard error, so to the function's log; by default only errors.
package grpclog

import (
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
)

// Logger is the old kind.
//
// Deprecated: use LoggerV2.
type Logger interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Fatalln(args ...any)
	Print(args ...any)
	Printf(format string, args ...any)
	Println(args ...any)
}

// LoggerV2 has levels.
type LoggerV2 interface {
	Info(args ...any)
	Infoln(args ...any)
	Infof(format string, args ...any)
	Warning(args ...any)
	Warningln(args ...any)
	Warningf(format string, args ...any)
	Error(args ...any)
	Errorln(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalln(args ...any)
	Fatalf(format string, args ...any)
	V(l int) bool
}

// DepthLoggerV2 knows how far away the caller is.
type DepthLoggerV2 interface {
	LoggerV2
	InfoDepth(depth int, args ...any)
	WarningDepth(depth int, args ...any)
	ErrorDepth(depth int, args ...any)
	FatalDepth(depth int, args ...any)
}

const (
	levelInfo = iota
	levelWarning
	levelError
	levelFatal
	levels
)

var levelNames = [levels]string{"INFO: ", "WARNING: ", "ERROR: ", "FATAL: "}

// standard writes lines to a writer for each level.
type standard struct {
	loggers   [levels]*log.Logger
	verbosity int
}

// NewLoggerV2 writes to these.
func NewLoggerV2(infoW, warningW, errorW io.Writer) LoggerV2 {
	return NewLoggerV2WithVerbosity(infoW, warningW, errorW, 0)
}

// NewLoggerV2WithVerbosity says what V answers.
func NewLoggerV2WithVerbosity(infoW, warningW, errorW io.Writer, v int) LoggerV2 {
	s := &standard{verbosity: v}
	for level, w := range [levels]io.Writer{infoW, warningW, errorW, errorW} {
		s.loggers[level] = log.New(w, levelNames[level], log.LstdFlags)
	}
	return s
}

func fromEnvironment() LoggerV2 {
	info, warning, bad := io.Discard, io.Discard, io.Writer(os.Stderr)
	switch os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") {
	case "info", "INFO":
		info, warning = os.Stderr, os.Stderr
	case "warning", "WARNING":
		warning = os.Stderr
	}
	verbosity, _ := strconv.Atoi(os.Getenv("GRPC_GO_LOG_VERBOSITY_LEVEL"))
	return NewLoggerV2WithVerbosity(info, warning, bad, verbosity)
}

func (s *standard) put(level, depth int, text string) {
	if s.loggers[level].Writer() != io.Discard {
		s.loggers[level].Output(depth+3, text)
	}
	if level == levelFatal {
		os.Exit(1)
	}
}

func (s *standard) Info(args ...any)   { s.put(levelInfo, 0, fmt.Sprint(args...)) }
func (s *standard) Infoln(args ...any) { s.put(levelInfo, 0, fmt.Sprintln(args...)) }
func (s *standard) Infof(format string, args ...any) {
	s.put(levelInfo, 0, fmt.Sprintf(format, args...))
}
func (s *standard) InfoDepth(depth int, args ...any) { s.put(levelInfo, depth, fmt.Sprint(args...)) }
func (s *standard) Warning(args ...any)              { s.put(levelWarning, 0, fmt.Sprint(args...)) }
func (s *standard) Warningln(args ...any)            { s.put(levelWarning, 0, fmt.Sprintln(args...)) }
func (s *standard) Warningf(format string, args ...any) {
	s.put(levelWarning, 0, fmt.Sprintf(format, args...))
}
func (s *standard) WarningDepth(depth int, args ...any) {
	s.put(levelWarning, depth, fmt.Sprint(args...))
}
func (s *standard) Error(args ...any)   { s.put(levelError, 0, fmt.Sprint(args...)) }
func (s *standard) Errorln(args ...any) { s.put(levelError, 0, fmt.Sprintln(args...)) }
func (s *standard) Errorf(format string, args ...any) {
	s.put(levelError, 0, fmt.Sprintf(format, args...))
}
func (s *standard) ErrorDepth(depth int, args ...any) { s.put(levelError, depth, fmt.Sprint(args...)) }
func (s *standard) Fatal(args ...any)                 { s.put(levelFatal, 0, fmt.Sprint(args...)) }
func (s *standard) Fatalln(args ...any)               { s.put(levelFatal, 0, fmt.Sprintln(args...)) }
func (s *standard) Fatalf(format string, args ...any) {
	s.put(levelFatal, 0, fmt.Sprintf(format, args...))
}
func (s *standard) FatalDepth(depth int, args ...any) { s.put(levelFatal, depth, fmt.Sprint(args...)) }
func (s *standard) V(l int) bool                      { return l <= s.verbosity }

var current = fromEnvironment()

// SetLoggerV2 is for init functions.
func SetLoggerV2(l LoggerV2) {
	if l == nil {
		l = NewLoggerV2(io.Discard, io.Discard, io.Discard)
	}
	current = l
}

// SetLogger is for init functions.
//
// Deprecated: use SetLoggerV2.
func SetLogger(l Logger) { current = old{l} }

// old has levels in front of one that has none.
type old struct{ Logger }

func (o old) Info(args ...any)                    { o.Print(args...) }
func (o old) Infoln(args ...any)                  { o.Println(args...) }
func (o old) Infof(format string, args ...any)    { o.Printf(format, args...) }
func (o old) Warning(args ...any)                 { o.Print(args...) }
func (o old) Warningln(args ...any)               { o.Println(args...) }
func (o old) Warningf(format string, args ...any) { o.Printf(format, args...) }
func (o old) Error(args ...any)                   { o.Print(args...) }
func (o old) Errorln(args ...any)                 { o.Println(args...) }
func (o old) Errorf(format string, args ...any)   { o.Printf(format, args...) }
func (o old) V(l int) bool                        { return true }
