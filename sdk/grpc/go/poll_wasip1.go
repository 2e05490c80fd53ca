package grpc

import (
	"context"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"google.golang.org/grpc/status"
)

// Go's own poller, as package os uses it: goroutines wait for descriptors there, and all others run meanwhile. An os.File would do, but it
// asks the host for the descriptor's flags twice, and there is none for the standard input, which has not the flag that it looks for.

//go:linkname pollServerInit internal/poll.runtime_pollServerInit
func pollServerInit()

//go:linkname pollOpen internal/poll.runtime_pollOpen
func pollOpen(fd uintptr) (unsafe.Pointer, int)

//go:linkname pollClose internal/poll.runtime_pollClose
func pollClose(of unsafe.Pointer)

//go:linkname pollReset internal/poll.runtime_pollReset
func pollReset(of unsafe.Pointer, mode int) int

//go:linkname pollWait internal/poll.runtime_pollWait
func pollWait(of unsafe.Pointer, mode int) int

//go:linkname pollUnblock internal/poll.runtime_pollUnblock
func pollUnblock(of unsafe.Pointer)

func init() { pollServerInit() }

// poller waits for a descriptor. Nothing is made before a goroutine has to wait.
type poller struct {
	fd      int32
	looked  bool // a first wait was made without Go's poller
	mutex   sync.Mutex
	of      unsafe.Pointer
	waiters int
	closed  bool
	stop    func() bool // ends waiting for the end of the context
}

// quiet is how many goroutines there are when no request has started more.
var quiet int

// alone tells whether no other goroutine has been started for this request. Those of main may still wait for something: they have to wait for a moment more.
func alone() bool { return runtime.NumGoroutine() <= quiet }

// moment is how long all goroutines may have to wait for a call: most are over by then, and Go's poller costs more than they do.
const moment = 200 * time.Microsecond

// look waits for a moment, with all goroutines.
func (p *poller) look(mode int) (ready bool) {
	// Of each 48 bytes: { userdata: u64, tag: u8, ... }. A descriptor with tag 1 or 2 is { fd: u32 at 16 }, a clock with tag 0 is
	// { id: u32 at 16, timeout: u64 at 24 }.
	subscriptions := [12]uint64{1: 1, 2: uint64(uint32(p.fd)), 6: 1, 8: 1, 9: uint64(moment)}
	if mode == 'w' {
		subscriptions[1] = 2
	}
	var events [8]uint64
	var count uint32
	if pollOneoff(unsafe.Pointer(&subscriptions), unsafe.Pointer(&events), 2, &count) != 0 {
		return false
	}
	for i := 0; i < int(count); i++ {
		if events[4*i] == 0 {
			return true
		}
	}
	return false
}

// wait waits until reading ('r') or writing ('w') may go on, or the context ends.
func (p *poller) wait(ctx context.Context, mode int) error {
	if !p.looked && p.fd > 2 && alone() {
		p.looked = true
		if p.look(mode) {
			return nil
		}
	}
	p.mutex.Lock()
	if p.closed {
		p.mutex.Unlock()
		return gone(ctx)
	}
	if p.of == nil {
		of, failed := pollOpen(uintptr(p.fd))
		if failed != 0 {
			p.mutex.Unlock()
			return errno(failed)
		}
		p.of = of
		if ctx.Done() != nil {
			p.stop = context.AfterFunc(ctx, p.interrupt)
		}
	}
	p.waiters++
	p.mutex.Unlock()
	failed := pollReset(p.of, mode)
	if failed == 0 {
		failed = pollWait(p.of, mode)
	}
	p.mutex.Lock()
	p.waiters--
	p.free()
	p.mutex.Unlock()
	if failed != 0 {
		return gone(ctx)
	}
	return nil
}

// gone is what a goroutine gets that waits for what was closed meanwhile.
func gone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return epipe
}

// interrupt wakes every goroutine that waits: the call is given up.
func (p *poller) interrupt() { p.close() }

func (p *poller) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.of != nil {
		pollUnblock(p.of)
		if p.stop != nil {
			p.stop()
		}
	}
	p.free()
}

// free is left to the last goroutine that waits. The descriptor goes last: its number may be another's right after.
func (p *poller) free() {
	if !p.closed || p.waiters > 0 {
		return
	}
	if p.of != nil {
		pollClose(p.of)
		p.of = nil
	}
	if p.fd > 2 {
		fdClose(p.fd)
		p.fd = -1
	}
}
