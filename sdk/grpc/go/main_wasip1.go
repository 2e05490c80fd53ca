package grpc

import (
	"fmt"
	"os"
	"runtime"
	_ "unsafe" // for go:linkname
)

// The program's own main, which a library is not said to have. main_wasip1.s lets a function have no body here.
//
//go:linkname programMain main.main
func programMain()

// settle is how often others get their turn when the server serves: main may have more to do then.
const settle = 16

// initComponent runs main up to where a server serves.
//
//go:wasmexport init-component
func initComponent() {
	returned := make(chan struct{})
	go func() {
		programMain()
		close(returned)
	}()
	select {
	case <-served:
	case <-returned:
		if !isServing() {
			fmt.Fprintln(os.Stderr, "grpc: main returned, and no server serves")
			os.Exit(1)
		}
	}
	for i := 0; i < settle; i++ {
		runtime.Gosched()
	}
	warm()
	// Garbage would be in the memory of all requests, and the first collection would come early in each.
	runtime.GC()
	prepare()
	quiet = runtime.NumGoroutine()
}

// request is what answering a request needs, in one piece of memory: each page that is written has to be restored behind the request.
type request struct {
	exchange hostExchange
	call     serverCall
	room     [unaryRoom]byte
}

// next is for the next request. There is none behind the first, which in most functions is the last.
var next *request

// prepare does once what each request would have to do in its copy of the program.
func prepare() {
	// The host's calls all run on one goroutine. It would begin each time with little stack, and move it several times on its way into a handler.
	growStack()
	fillCaches()
	next = &request{}
	unaryCalls.Put(unaryCalls.New())
	wholeReplies.Put(wholeReplies.New())
}

// growStack makes room for what most handlers need. A stack only shrinks when garbage is collected.
//
//go:noinline
func growStack() {
	var room [16 << 10]byte
	used(&room)
}

//go:noinline
func used(room *[16 << 10]byte) { room[0] = 1 }

// kept lets allocations reach the heap.
var kept any

// fillCaches allocates something of each small size, so that the allocator has memory of all sizes at hand. A collection has just taken it away.
func fillCaches() {
	for size := 8; size <= 2<<10; size += 8 {
		kept = make([]byte, size)
		kept = make([]*byte, size/8)
	}
	kept = nil
}

// sledgeHandle answers a request. 0: the reply is complete.
//
//go:wasmexport sledge_handle
func sledgeHandle() int32 {
	r := next
	if next = nil; r == nil {
		r = &request{}
	}
	r.call.exchange = &r.exchange
	r.call.frames.Room = r.room[:]
	err := r.call.answer()
	if err == nil {
		err = r.exchange.flush()
	}
	r.exchange.end()
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		return 1
	}
	return 0
}
