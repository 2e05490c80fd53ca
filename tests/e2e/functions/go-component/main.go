// Counts the bytes of a request's body: a component, in stock Go without generated code. The tests put memory.go of examples/four-languages/ledger beside it.
package main

import (
	"strconv"
	"unsafe"
)

// A result with a handle: zero in the first byte, and the handle.
type handleResult struct {
	failed uint32
	handle uint32
}

// A result with a list of bytes. Addresses in Go have 64 bits, those of the component 32.
type listResult struct {
	failed uint32
	bytes  uint32
	count  uint32
}

// A result whose error is an `error-code`.
type errorResult [8]uint64

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-request.consume
func consume(request uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [method]incoming-body.stream
func incomingStream(body uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [constructor]fields
func newFields() uint32

//go:wasmimport wasi:http/types@0.2.0 [constructor]outgoing-response
func newResponse(fields uint32) uint32

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-response.body
func responseBody(response uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [method]outgoing-body.write
func outgoingStream(body uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [static]outgoing-body.finish
func finish(body, hasTrailers, trailers uint32, result unsafe.Pointer)

//go:wasmimport wasi:http/types@0.2.0 [static]response-outparam.set
func set(out, failed, response, e1 uint32, e2 uint64, e3, e4, e5, e6 uint32)

//go:wasmimport wasi:io/streams@0.2.0 [method]input-stream.blocking-read
func read(stream uint32, bytesMax uint64, result unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.0 [method]output-stream.blocking-write-and-flush
func write(stream uint32, bytes unsafe.Pointer, count uint32, result unsafe.Pointer)

//go:wasmimport wasi:io/streams@0.2.0 [resource-drop]output-stream
func dropStream(stream uint32)

func must(result *handleResult) uint32 {
	if uint8(result.failed) != 0 {
		panic("refused")
	}
	return result.handle
}

//go:wasmexport wasi:http/incoming-handler@0.2.0#handle
func handle(request, out uint32) {
	var body, stream handleResult
	consume(request, unsafe.Pointer(&body))
	incomingStream(must(&body), unsafe.Pointer(&stream))
	// All of it is kept, as a handler does that decodes it.
	var all []byte
	for {
		var part listResult
		read(must(&stream), 1<<16, unsafe.Pointer(&part))
		if uint8(part.failed) != 0 {
			break
		}
		all = append(all, bytes(unsafe.Pointer(uintptr(part.bytes)), part.count)...)
		release()
	}
	reply(out, strconv.Itoa(len(all)))
}

func reply(out uint32, text string) {
	var body, stream handleResult
	var done errorResult
	response := newResponse(newFields())
	responseBody(response, unsafe.Pointer(&body))
	set(out, 0, response, 0, 0, 0, 0, 0, 0)
	outgoingStream(must(&body), unsafe.Pointer(&stream))
	write(must(&stream), unsafe.Pointer(unsafe.StringData(text)), uint32(len(text)), unsafe.Pointer(&done))
	dropStream(must(&stream))
	finish(body.handle, 0, 0, unsafe.Pointer(&done))
}

func main() {}
