//go:build !wasip1

package grpc

import (
	"context"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/status"
)

// The host of tests: both sides of a call are goroutines here. It holds the contract of sledge:rpc.

// nativeEdge answers the calls of a service, in place of the server that serves it. It is for tests of what servers do not do.
var nativeEdge = map[string]func(x exchange) error{}

// pipeMax is how much is under way.
const pipeMax = 64 << 10

// pipe is one direction of a body.
type pipe struct {
	mutex   sync.Mutex
	bytes   []byte
	ended   bool
	broken  bool
	changed chan struct{} // closed at the next change
}

func newPipe() *pipe { return &pipe{changed: make(chan struct{})} }

func (p *pipe) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pipe) read(ctx context.Context, into []byte) (int, error) {
	for {
		p.mutex.Lock()
		if len(p.bytes) > 0 {
			count := copy(into, p.bytes)
			p.bytes = p.bytes[count:]
			p.change()
			p.mutex.Unlock()
			return count, nil
		}
		ended, changed := p.ended || p.broken, p.changed
		p.mutex.Unlock()
		if ended {
			return 0, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, status.FromContextError(ctx.Err()).Err()
		}
	}
}

func (p *pipe) write(ctx context.Context, bytes []byte, most int) error {
	for len(bytes) > 0 {
		p.mutex.Lock()
		if p.ended || p.broken {
			p.mutex.Unlock()
			return io.EOF
		}
		room, changed := most-len(p.bytes), p.changed
		if room > 0 {
			count := min(room, len(bytes))
			p.bytes = append(p.bytes, bytes[:count]...)
			bytes = bytes[count:]
			p.change()
			p.mutex.Unlock()
			continue
		}
		p.mutex.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	return nil
}

func (p *pipe) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.ended = true
	p.change()
}

// isOver tells whether all is read.
func (p *pipe) isOver() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.bytes) == 0 && (p.ended || p.broken)
}

func (p *pipe) isBroken() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.broken
}

// breakOff drops what is under way.
func (p *pipe) breakOff() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.broken, p.bytes = true, nil
	p.change()
}

type field struct{ name, value string }

func rowsOf(fields []field) (rows []byte) {
	for _, one := range fields {
		rows = wire.AppendField(rows, one.name, one.value)
	}
	return rows
}

// nativeCall is a call with both of its sides.
type nativeCall struct {
	path           string
	rows           []byte
	request, reply *pipe

	mutex    sync.Mutex
	header   []field
	trailer  []field
	headSent chan struct{}
	isSent   bool
	isOver   bool
	timer    *time.Timer
}

// nativeExchange is the side that answers.
type nativeExchange struct{ *nativeCall }

// nativeWire is the side that calls.
type nativeWire struct{ *nativeCall }

// recycle has nothing to do: each call has rooms of its own here.
func recycle(wireCall) {}

func beginCall(path string, head, message []byte, timeout int64, end bool) (wireCall, error) {
	service := path[1:max(strings.LastIndexByte(path, '/'), 1)]
	if len(message) > beginMax {
		return nil, e2big
	}
	edge := nativeEdge[service]
	if edge == nil {
		if !nativeServes(service) {
			return nil, enoent
		}
		edge = answer
	}
	rows := append([]byte(nil), head...)
	if timeout >= 0 {
		rows = wire.AppendField(rows, "grpc-timeout", wire.FormatTimeout(time.Duration(timeout)))
	}
	c := &nativeCall{path: path, rows: rows, request: newPipe(), reply: newPipe(), headSent: make(chan struct{})}
	c.request.bytes = append(c.request.bytes, message...)
	if end {
		c.request.end()
	}
	if timeout >= 0 {
		c.mutex.Lock()
		c.timer = time.AfterFunc(time.Duration(timeout), func() { c.over("4", "the deadline is over") })
		c.mutex.Unlock()
	}
	go func() {
		defer func() {
			if why := recover(); why != nil {
				os.Stderr.Write(debug.Stack())
				c.over("13", "the function failed")
			}
		}()
		if err := edge(nativeExchange{c}); err != nil {
			c.over("13", "the function failed")
			return
		}
		c.over("", "")
	}()
	return nativeWire{c}, nil
}

func nativeServes(service string) bool {
	serving.RLock()
	defer serving.RUnlock()
	for _, s := range serving.servers {
		if s.services[service] != nil || s.options.unknown != nil {
			return true
		}
	}
	return false
}

// over ends the call: with the trailers that there are, or with that status.
func (c *nativeCall) over(code, message string) {
	c.mutex.Lock()
	if c.isOver {
		c.mutex.Unlock()
		return
	}
	c.isOver = true
	if code != "" {
		c.trailer = []field{{"grpc-status", code}, {"grpc-message", message}}
	}
	timer := c.timer
	c.mutex.Unlock()
	c.sendHead()
	if timer != nil {
		timer.Stop()
	}
	if code != "" {
		c.reply.breakOff()
	} else {
		c.reply.end()
	}
	c.request.breakOff()
}

func (c *nativeCall) sendHead() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.isSent {
		c.isSent = true
		close(c.headSent)
	}
}

func (x nativeExchange) target() []byte  { return []byte(x.path) }
func (x nativeExchange) headers() []byte { return x.rows }

func (x nativeExchange) read(ctx context.Context, into []byte, share bool) (int, error) {
	count, err := x.request.read(ctx, into)
	if err == io.EOF && x.request.isBroken() {
		// The sandbox of a function would not be there any more.
		err = status.Error(codes.Canceled, "grpc: the caller has given up")
	}
	return count, err
}

func (x nativeExchange) setStatus(code int32) {}

func (x nativeExchange) put(all *[]field, name, value string, more bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.isOver {
		return
	}
	if !more {
		kept := (*all)[:0]
		for _, one := range *all {
			if one.name != name {
				kept = append(kept, one)
			}
		}
		*all = kept
	}
	*all = append(*all, field{name, value})
}

func (x nativeExchange) setHeader(name, value string)  { x.put(&x.header, name, value, false) }
func (x nativeExchange) addHeader(name, value string)  { x.put(&x.header, name, value, true) }
func (x nativeExchange) setTrailer(name, value string) { x.put(&x.trailer, name, value, false) }
func (x nativeExchange) addTrailer(name, value string) { x.put(&x.trailer, name, value, true) }
func (x nativeExchange) stream()                       { x.sendHead() }

func (x nativeExchange) write(bytes []byte) error {
	// What does not stream is kept until the function has returned.
	x.mutex.Lock()
	most := math.MaxInt
	if x.isSent {
		most = pipeMax
	}
	x.mutex.Unlock()
	if x.reply.write(context.Background(), bytes, most) != nil {
		return epipe
	}
	return nil
}

func (w nativeWire) read(ctx context.Context, into []byte) (int, error) {
	return w.reply.read(ctx, into)
}

func (w nativeWire) write(ctx context.Context, bytes []byte) error {
	return w.request.write(ctx, bytes, pipeMax)
}

func (w nativeWire) closeSend() error {
	w.request.end()
	return nil
}

func (w nativeWire) head(ctx context.Context) ([]byte, error) {
	select {
	case <-w.headSent:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return rowsOf(w.nativeCall.header), nil
}

func (w nativeWire) trailers() ([]byte, error) {
	if !w.reply.isOver() {
		return nil, eagain
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return rowsOf(w.trailer), nil
}

func (w nativeWire) close() { w.over("1", "cancelled") }
