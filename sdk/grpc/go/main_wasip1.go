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
	for range settle {
		runtime.Gosched()
	}
	warm()
	// Garbage would be in the memory of all requests, and the first collection would come early in each.
	runtime.GC()
	quiet = runtime.NumGoroutine()
}

// sledgeHandle answers a request. 0: the reply is complete.
//
//go:wasmexport sledge_handle
func sledgeHandle() int32 {
	x := &hostExchange{}
	err := answer(x)
	x.end()
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		return 1
	}
	return 0
}
