package grpclog

import "fmt"

// V tells whether that much detail is wanted.
func V(l int) bool { return current.V(l) }

// Info logs.
func Info(args ...any) { current.Info(args...) }

// Infof logs.
func Infof(format string, args ...any) { current.Infof(format, args...) }

// Infoln logs.
func Infoln(args ...any) { current.Infoln(args...) }

// InfoDepth logs.
func InfoDepth(depth int, args ...any) { deep{current}.InfoDepth(depth+1, args...) }

// Warning logs.
func Warning(args ...any) { current.Warning(args...) }

// Warningf logs.
func Warningf(format string, args ...any) { current.Warningf(format, args...) }

// Warningln logs.
func Warningln(args ...any) { current.Warningln(args...) }

// WarningDepth logs.
func WarningDepth(depth int, args ...any) { deep{current}.WarningDepth(depth+1, args...) }

// Error logs.
func Error(args ...any) { current.Error(args...) }

// Errorf logs.
func Errorf(format string, args ...any) { current.Errorf(format, args...) }

// Errorln logs.
func Errorln(args ...any) { current.Errorln(args...) }

// ErrorDepth logs.
func ErrorDepth(depth int, args ...any) { deep{current}.ErrorDepth(depth+1, args...) }

// Fatal logs and ends the program.
func Fatal(args ...any) { current.Fatal(args...) }

// Fatalf logs and ends the program.
func Fatalf(format string, args ...any) { current.Fatalf(format, args...) }

// Fatalln logs and ends the program.
func Fatalln(args ...any) { current.Fatalln(args...) }

// FatalDepth logs and ends the program.
func FatalDepth(depth int, args ...any) { deep{current}.FatalDepth(depth+1, args...) }

// Print logs.
//
// Deprecated: use Info.
func Print(args ...any) { current.Info(args...) }

// Printf logs.
//
// Deprecated: use Infof.
func Printf(format string, args ...any) { current.Infof(format, args...) }

// Println logs.
//
// Deprecated: use Infoln.
func Println(args ...any) { current.Infoln(args...) }

// deep forgets how far away the caller is where the logger does not want to know.
type deep struct{ LoggerV2 }

func (d deep) InfoDepth(depth int, args ...any) {
	if l, ok := d.LoggerV2.(DepthLoggerV2); ok {
		l.InfoDepth(depth+1, args...)
	} else {
		d.Infoln(args...)
	}
}

func (d deep) WarningDepth(depth int, args ...any) {
	if l, ok := d.LoggerV2.(DepthLoggerV2); ok {
		l.WarningDepth(depth+1, args...)
	} else {
		d.Warningln(args...)
	}
}

func (d deep) ErrorDepth(depth int, args ...any) {
	if l, ok := d.LoggerV2.(DepthLoggerV2); ok {
		l.ErrorDepth(depth+1, args...)
	} else {
		d.Errorln(args...)
	}
}

func (d deep) FatalDepth(depth int, args ...any) {
	if l, ok := d.LoggerV2.(DepthLoggerV2); ok {
		l.FatalDepth(depth+1, args...)
	} else {
		d.Fatalln(args...)
	}
}

// component puts a name in front.
type component struct {
	deep
	name string
}

// Component is a logger for a part of a program.
func Component(componentName string) DepthLoggerV2 {
	return &component{name: "[" + componentName + "]"}
}

func (c *component) to() deep { return deep{current} }

func (c *component) with(args []any) []any { return append([]any{c.name}, args...) }

func (c *component) InfoDepth(depth int, args ...any) { c.to().InfoDepth(depth+1, c.with(args)...) }
func (c *component) WarningDepth(depth int, args ...any) {
	c.to().WarningDepth(depth+1, c.with(args)...)
}
func (c *component) ErrorDepth(depth int, args ...any) { c.to().ErrorDepth(depth+1, c.with(args)...) }
func (c *component) FatalDepth(depth int, args ...any) { c.to().FatalDepth(depth+1, c.with(args)...) }

func (c *component) Info(args ...any)      { c.InfoDepth(1, args...) }
func (c *component) Infoln(args ...any)    { c.InfoDepth(1, args...) }
func (c *component) Warning(args ...any)   { c.WarningDepth(1, args...) }
func (c *component) Warningln(args ...any) { c.WarningDepth(1, args...) }
func (c *component) Error(args ...any)     { c.ErrorDepth(1, args...) }
func (c *component) Errorln(args ...any)   { c.ErrorDepth(1, args...) }
func (c *component) Fatal(args ...any)     { c.FatalDepth(1, args...) }
func (c *component) Fatalln(args ...any)   { c.FatalDepth(1, args...) }

func (c *component) Infof(format string, args ...any) { c.InfoDepth(1, fmt.Sprintf(format, args...)) }
func (c *component) Warningf(format string, args ...any) {
	c.WarningDepth(1, fmt.Sprintf(format, args...))
}
func (c *component) Errorf(format string, args ...any) { c.ErrorDepth(1, fmt.Sprintf(format, args...)) }
func (c *component) Fatalf(format string, args ...any) { c.FatalDepth(1, fmt.Sprintf(format, args...)) }
func (c *component) V(l int) bool                      { return V(l) }
