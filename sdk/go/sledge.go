// Package sledge is for functions in Go that Sledge runs. It needs nothing but Go itself: GOOS=wasip1 GOARCH=wasm.
//
// A function is a [Handler]. In a command, main calls [Main]: the program starts from the beginning for each request. In a reactor
// (-buildmode=c-shared), which is initialised once, an exported function calls [Respond]:
//
//	//go:wasmexport sledge_handle
//	func handle() int32 { return sledge.Respond(answer) }
//
// Outside of WebAssembly, [Recorder] takes replies for tests, and all that a server offers fails with [ErrNotSupported].
package sledge

import (
	"fmt"
	"io"
	"os"
)

// Handler answers one request. If it returns an error, the client gets status 500, unless the reply is being streamed already, and the error
// goes to the function's log.
type Handler func(w ResponseWriter, r *Request) error

// Request is what a function is called with.
type Request struct {
	Method  string // GET, POST and so on; empty if another function calls
	Target  string // path and query, as they were sent
	Headers []Field
	Body    io.Reader
}

// Field is a header or trailer.
type Field struct{ Name, Value string }

// Header returns the first header of that name (in lower case), or "".
func (r *Request) Header(name string) string {
	for _, field := range r.Headers {
		if field.Name == name {
			return field.Value
		}
	}
	return ""
}

// ResponseWriter takes a reply. What it cannot take fails the request when the handler has returned.
type ResponseWriter interface {
	// Write adds to the body.
	io.Writer
	// SetStatus sets the status, 200 to 599. It is 200 otherwise.
	SetStatus(code int)
	// SetHeader replaces all headers of that name, those of the server included.
	SetHeader(name, value string)
	// AddHeader adds a header.
	AddHeader(name, value string)
	// SetTrailer replaces all trailers of that name; also after Stream.
	SetTrailer(name, value string)
	// Stream sends the head. From then on the body is sent while it is written; length is -1 if it is not known.
	Stream(length int64)
}

// Respond answers the current request. It returns 0 if the reply is complete, which is what sledge_handle has to return.
func Respond(handler Handler) int32 {
	w := &live{}
	err := handler(w, current())
	if err == nil {
		err = w.err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Main answers the current request and ends the program.
func Main(handler Handler) { os.Exit(int(Respond(handler))) }

// Trailer returns a trailer of the request. It is known when the body has been read to its end.
func Trailer(name string) (string, error) {
	value, err := text(func(at pointer, room uint32) int32 { return httpTrailer(name, at, room) })
	return string(value), err
}

func current() *Request {
	r := &Request{Body: os.Stdin}
	method, err := text(httpMethod)
	if err != nil {
		return r
	}
	target, _ := text(httpTarget)
	rows, _ := text(httpHeaders)
	r.Method, r.Target, r.Headers = string(method), string(target), fields(rows)
	return r
}

// live is the reply to the current request, with the first error.
type live struct{ err error }

func (w *live) check(what string, result int32) {
	if result < 0 && w.err == nil {
		w.err = fmt.Errorf("%s: %w", what, Errno(-result))
	}
}

func (w *live) Write(bytes []byte) (int, error) {
	count, err := os.Stdout.Write(bytes)
	if err != nil && w.err == nil {
		w.err = err
	}
	return count, err
}

func (w *live) SetStatus(code int) { w.check(fmt.Sprint("status ", code), httpStatus(int32(code))) }

func (w *live) SetHeader(name, value string) { w.check("header "+name, httpSetHeader(name, value)) }

func (w *live) AddHeader(name, value string) { w.check("header "+name, httpAddHeader(name, value)) }

func (w *live) SetTrailer(name, value string) { w.check("trailer "+name, httpSetTrailer(name, value)) }

func (w *live) Stream(length int64) { w.check("stream", httpStream(length)) }
