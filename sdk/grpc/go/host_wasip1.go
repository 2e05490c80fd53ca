package grpc

import (
	"context"
	"io"
	"runtime"
	"sync"
	"unsafe"

	"google.golang.org/grpc/internal/wire"
)

// The host functions, in their flat form (sdk/wit/README.md). A string is an address and a length. None of them keeps what it is given.

//go:wasmimport sledge:http status
func httpStatus(code int32) int32

//go:wasmimport sledge:http set-trailer
//go:noescape
func httpSetTrailer(name, value string) int32

//go:wasmimport sledge:http add-trailer
//go:noescape
func httpAddTrailer(name, value string) int32

//go:wasmimport sledge:http stream
func httpStream(length int64) int32

//go:wasmimport sledge:rpc begin
//go:noescape
func rpcBegin(path string, head unsafe.Pointer, headBytes uint32, message unsafe.Pointer, messageBytes uint32, timeout int64, flags int32) int32

//go:wasmimport sledge:rpc head
//go:noescape
func rpcHead(fd int32, rows unsafe.Pointer, room uint32) int32

//go:wasmimport sledge:rpc trailers
//go:noescape
func rpcTrailers(fd int32, rows unsafe.Pointer, room uint32) int32

//go:wasmimport sledge:rpc call
//go:noescape
func rpcCall(path string, head unsafe.Pointer, headBytes uint32, message unsafe.Pointer, messageBytes uint32, timeout int64, reply unsafe.Pointer, room uint32, sizes *[3]uint32) int32

//go:wasmimport sledge:rpc accept
//go:noescape
func rpcAccept(at unsafe.Pointer, room uint32, sizes *[3]uint32) int32

//go:wasmimport sledge:rpc answer
//go:noescape
func rpcAnswer(headers unsafe.Pointer, headersBytes uint32, body unsafe.Pointer, bodyBytes uint32, trailers unsafe.Pointer, trailersBytes uint32) int32

//go:wasmimport wasi_snapshot_preview1 fd_read
//go:noescape
func fdRead(fd int32, vectors unsafe.Pointer, count uint32, done *uint32) int32

//go:wasmimport wasi_snapshot_preview1 fd_write
//go:noescape
func fdWrite(fd int32, vectors unsafe.Pointer, count uint32, done *uint32) int32

//go:wasmimport wasi_snapshot_preview1 fd_close
func fdClose(fd int32) int32

//go:wasmimport wasi_snapshot_preview1 sock_shutdown
func sockShutdown(fd int32, how int32) int32

//go:wasmimport wasi_snapshot_preview1 poll_oneoff
//go:noescape
func pollOneoff(in, out unsafe.Pointer, count uint32, events *uint32) int32

// notWhole is the length of a body that is to be read by itself.
const notWhole = 1<<32 - 1

// shutdownWrite is the flag of sock_shutdown.
const shutdownWrite = 2

type vector struct{ at, length uint32 }

func address(bytes []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(bytes)) }

func vectorOf(bytes []byte) vector {
	return vector{uint32(uintptr(address(bytes))), uint32(len(bytes))}
}

// readSome is one fd_read.
func readSome(fd int32, into []byte) (int, errno) {
	vector, done := vectorOf(into), uint32(0)
	result := fdRead(fd, unsafe.Pointer(&vector), 1, &done)
	return int(done), errno(result)
}

// writeSome is one fd_write.
func writeSome(fd int32, bytes []byte) (int, errno) {
	vector, done := vectorOf(bytes), uint32(0)
	result := fdWrite(fd, unsafe.Pointer(&vector), 1, &done)
	return int(done), errno(result)
}

// rows calls a function that writes what fits and says how long all of it is. The room becomes large enough.
func rows(room []byte, write func(at unsafe.Pointer, room uint32) int32) (all, grown []byte, err error) {
	for {
		length := write(address(room), uint32(len(room)))
		if length < 0 {
			return nil, room, errno(-length)
		}
		if int(length) <= len(room) {
			return room[:length], room, nil
		}
		room = make([]byte, length)
	}
}

// The request that is answered, and its reply. There is one at a time, so the rooms are reused, and are there when memory is kept for all requests.
var (
	requestRoom = make([]byte, 4<<10)
	fieldsRoom  = make([]byte, 256)
	trailRoom   = make([]byte, 256)
)

// hostExchange is the request that the host calls for.
type hostExchange struct {
	input *poller
	// The request: path and query, headers, and what is left of its body, if all of that was there at the beginning.
	path, rows, body []byte
	whole            bool
	// Of the reply, what is not said yet: headers and trailers as rows, and what of its body was written in one piece.
	fields, trail, reply []byte
	streams              bool
}

func (x *hostExchange) target() []byte {
	var sizes [3]uint32
	for {
		length := rpcAccept(address(requestRoom), uint32(len(requestRoom)), &sizes)
		if length < 0 {
			return nil
		}
		if int(length) <= len(requestRoom) {
			break
		}
		requestRoom = make([]byte, length)
	}
	fields := sizes[0] + sizes[1]
	x.path, x.rows = requestRoom[:sizes[0]:sizes[0]], requestRoom[sizes[0]:fields:fields]
	if x.whole = sizes[2] != notWhole; x.whole {
		x.body = requestRoom[fields : fields+sizes[2]]
	}
	x.fields, x.trail, x.reply, x.streams = fieldsRoom[:0], trailRoom[:0], nil, false
	return x.path
}

func (x *hostExchange) headers() []byte { return x.rows }

func (x *hostExchange) read(ctx context.Context, into []byte, share bool) (int, error) {
	if x.whole {
		if len(x.body) == 0 {
			return 0, io.EOF
		}
		count := copy(into, x.body)
		x.body = x.body[count:]
		return count, nil
	}
	for {
		if share && !inputIsReady() {
			if err := x.waitForInput(ctx); err != nil {
				return 0, err
			}
			continue
		}
		count, err := readSome(0, into)
		switch {
		case err == eagain:
			if err := x.waitForInput(ctx); err != nil {
				return 0, err
			}
		case err != 0:
			return 0, err
		case count == 0:
			return 0, io.EOF
		default:
			return count, nil
		}
	}
}

func (x *hostExchange) waitForInput(ctx context.Context) error {
	if x.input == nil {
		x.input = &poller{fd: 0}
	}
	return x.input.wait(ctx, 'r')
}

// end is where the client waits for the request no more.
func (x *hostExchange) end() {
	if x.input != nil {
		x.input.close()
	}
}

// inputIsReady asks without waiting. Reading would make all goroutines wait: the input has no flag against that.
func inputIsReady() bool {
	// Of each 48 bytes: { userdata: u64, tag: u8, ... }. The first is { fd: u32 at 16 } with tag 1, the second a clock whose time has come:
	// { id: u32 at 16, timeout: u64 at 24 } with tag 0.
	subscriptions := [12]uint64{1: 1, 6: 1, 8: 1}
	var events [8]uint64
	var count uint32
	if pollOneoff(unsafe.Pointer(&subscriptions), unsafe.Pointer(&events), 2, &count) != 0 {
		return true
	}
	for i := 0; i < int(count); i++ {
		if events[4*i] == 0 {
			return true
		}
	}
	return false
}

func (x *hostExchange) setStatus(code int32) { httpStatus(code) }

func (x *hostExchange) setHeader(name, value string) { x.addHeader(name, value) }

func (x *hostExchange) addHeader(name, value string) {
	x.fields = wire.AppendField(x.fields, name, value)
}

func (x *hostExchange) setTrailer(name, value string) {
	if x.streams {
		httpSetTrailer(name, value)
	} else {
		x.trail = wire.AppendField(x.trail, name, value)
	}
}

func (x *hostExchange) addTrailer(name, value string) {
	if x.streams {
		httpAddTrailer(name, value)
	} else {
		x.trail = wire.AppendField(x.trail, name, value)
	}
}

func (x *hostExchange) stream() {
	// What the host does not take it does not take from what is written either.
	x.flush()
	x.streams = true
	httpStream(-1)
}

// flush says what is not said yet.
func (x *hostExchange) flush() error {
	if x.streams {
		return nil
	}
	result := rpcAnswer(address(x.fields), uint32(len(x.fields)), address(x.reply), uint32(len(x.reply)), address(x.trail), uint32(len(x.trail)))
	x.fields, x.trail, x.reply = x.fields[:0], x.trail[:0], nil
	if result < 0 {
		return errno(-result)
	}
	return nil
}

// write keeps the first piece where it is, to be said with the rest.
func (x *hostExchange) write(bytes []byte) error {
	if !x.streams {
		if x.reply == nil {
			x.reply = bytes
		} else {
			x.reply = append(x.reply[:len(x.reply):len(x.reply)], bytes...)
		}
		return nil
	}
	for len(bytes) > 0 {
		count, err := writeSome(1, bytes)
		if err != 0 {
			return err
		}
		bytes = bytes[count:]
	}
	return nil
}

// descriptor is a call, by its file descriptor.
type descriptor struct {
	poller
	isNew    bool
	tailRoom [128]byte
	tail     []byte
}

// replyRoom is for replies that come with the call.
const replyRoom = 2 << 10

// wholeReply is a call whose reply came with it.
type wholeReply struct {
	room             [replyRoom]byte
	rows, body, tail []byte
}

// recycle takes back what belonged to a call that is over, and at which nothing looks any more.
func recycle(w wireCall) {
	if whole, is := w.(*wholeReply); is {
		wholeReplies.Put(whole)
	}
}

var wholeReplies = sync.Pool{New: func() any { return new(wholeReply) }}

func (w *wholeReply) read(_ context.Context, into []byte) (int, error) {
	if len(w.body) == 0 {
		return 0, io.EOF
	}
	count := copy(into, w.body)
	w.body = w.body[count:]
	return count, nil
}

func (w *wholeReply) write(context.Context, []byte) error  { return io.EOF }
func (w *wholeReply) closeSend() error                     { return nil }
func (w *wholeReply) head(context.Context) ([]byte, error) { return w.rows, nil }

// close leaves it as it is: a stream may still be asked for its headers.
func (w *wholeReply) close() {}

func (w *wholeReply) trailers() ([]byte, error) {
	if len(w.body) > 0 {
		return nil, eagain
	}
	return w.tail, nil
}

// atOnce counts replies that came with their calls.
var atOnce int

// atOnceMax is how many of them come in a row before timers have their turn.
const atOnceMax = 64

// letOthers gives other goroutines their turn, and timers now and then: a goroutine whose replies come with its calls would never wait.
func letOthers() {
	if atOnce++; atOnce%atOnceMax == 0 || !alone() {
		runtime.Gosched()
	}
}

func beginCall(path string, head, message []byte, timeout int64, end bool) (wireCall, error) {
	if !end {
		fd := rpcBegin(path, address(head), uint32(len(head)), address(message), uint32(len(message)), timeout, 0)
		if fd < 0 {
			return nil, errno(-fd)
		}
		return &descriptor{poller: poller{fd: fd}}, nil
	}
	// What is called runs meanwhile.
	whole, sizes := wholeReplies.Get().(*wholeReply), [3]uint32{}
	fd := rpcCall(path, address(head), uint32(len(head)), address(message), uint32(len(message)), timeout, unsafe.Pointer(&whole.room), replyRoom, &sizes)
	if fd == 0 {
		letOthers()
		body, tail := sizes[0]+sizes[1], sizes[0]+sizes[1]+sizes[2]
		whole.rows, whole.body, whole.tail = whole.room[:sizes[0]], whole.room[sizes[0]:body], whole.room[body:tail]
		return whole, nil
	}
	wholeReplies.Put(whole)
	if fd < 0 {
		return nil, errno(-fd)
	}
	return &descriptor{poller: poller{fd: fd}, isNew: true}, nil
}

func (d *descriptor) read(ctx context.Context, into []byte) (int, error) {
	if d.isNew {
		// There is no reply yet: the other function runs while this one waits.
		d.isNew = false
		if err := d.wait(ctx, 'r'); err != nil {
			return 0, err
		}
	}
	for {
		count, err := readSome(d.fd, into)
		switch {
		case err == eagain:
			if err := d.wait(ctx, 'r'); err != nil {
				return 0, err
			}
		case err != 0:
			return 0, err
		case count == 0:
			return 0, io.EOF
		default:
			return count, nil
		}
	}
}

func (d *descriptor) write(ctx context.Context, bytes []byte) error {
	for len(bytes) > 0 {
		count, err := writeSome(d.fd, bytes)
		switch {
		case err == eagain:
			if err := d.wait(ctx, 'w'); err != nil {
				return err
			}
		case err == epipe:
			return io.EOF
		case err != 0:
			return err
		default:
			bytes = bytes[count:]
		}
	}
	return nil
}

func (d *descriptor) closeSend() error {
	if err := errno(sockShutdown(d.fd, shutdownWrite)); err != 0 {
		return err
	}
	return nil
}

func (d *descriptor) head(ctx context.Context) ([]byte, error) {
	for {
		all, _, err := rows(make([]byte, 1<<10), func(at unsafe.Pointer, room uint32) int32 { return rpcHead(d.fd, at, room) })
		if err != eagain {
			return all, err
		}
		if err := d.wait(ctx, 'r'); err != nil {
			return nil, err
		}
	}
}

func (d *descriptor) trailers() ([]byte, error) {
	if d.tail == nil {
		d.tail = d.tailRoom[:]
	}
	for {
		length := rpcTrailers(d.fd, address(d.tail), uint32(len(d.tail)))
		if length < 0 {
			return nil, errno(-length)
		}
		if int(length) <= len(d.tail) {
			return d.tail[:length], nil
		}
		d.tail = make([]byte, length)
	}
}
