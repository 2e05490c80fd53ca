package grpc

import (
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/internal/carry"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// serverCall is a call that is answered. It is the stream that a handler has, too.
type serverCall struct {
	exchange exchange
	method   *method
	ctx      context.Context
	base     callContext
	watch    *serverWatch

	// From the request's headers.
	rows          []byte
	subtype       string
	receivePacker string
	deadline      time.Time
	hasDeadline   bool

	coder               coder
	pack                *packer
	receiveMax, sendMax int
	unary               bool
	frames              wire.Frames

	mutex       sync.Mutex
	metadata    map[string][]string
	hasMetadata bool
	header      metadata.MD
	trailer     metadata.MD
	headersSent bool
	streams     bool
	over        bool
}

var (
	_ ServerStream          = (*serverCall)(nil)
	_ ServerTransportStream = transportStream{}
)

// Metadata is that of carry.Lazy.
func (c *serverCall) Metadata() map[string][]string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.hasMetadata {
		c.metadata, c.hasMetadata = wire.Metadata(c.rows), true
	}
	return c.metadata
}

// More is that of wire.Source.
func (c *serverCall) More(into []byte) (int, error) { return c.exchange.read(c.ctx, into, !c.unary) }

// next is the next message of the request.
func (c *serverCall) next() ([]byte, error) {
	if c.frames.Room == nil {
		c.frames.Room = make([]byte, unaryRoom)
	}
	message, compressed, err := c.frames.Next(c.receiveMax, c)
	if err == nil && compressed {
		message, err = unpack(c.receivePacker, c.method.server.options.decompressor, message, c.receiveMax)
	}
	return message, err
}

func (c *serverCall) frame(room []byte, m any) ([]byte, error) {
	if prepared, ok := m.(*PreparedMsg); ok {
		return prepared.frame, nil
	}
	return c.coder.frame(room, m, c.pack, c.sendMax)
}

// Context is that of the handler.
func (c *serverCall) Context() context.Context { return c.ctx }

func (c *serverCall) RecvMsg(m any) error {
	message, err := c.next()
	if err == io.EOF {
		return io.EOF
	}
	if err != nil {
		return receiveError(err)
	}
	if err := c.coder.unmarshal(message, m); err != nil {
		return err
	}
	c.watch.inPayload(m, message)
	return nil
}

func (c *serverCall) SendMsg(m any) error {
	if c.isOver() {
		return status.Error(codes.Internal, "grpc: SendMsg behind the end of the call")
	}
	frame, err := c.frame(nil, m)
	if err != nil {
		return err
	}
	c.begin()
	if err := c.exchange.write(frame); err != nil {
		return status.Errorf(codes.Unavailable, "grpc: sending: %v", err)
	}
	c.watch.outPayload(m, frame)
	return nil
}

func (c *serverCall) isOver() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.over
}

// begin lets the reply go out while it is written.
func (c *serverCall) begin() {
	c.writeHeaders()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.streams {
		c.streams = true
		c.exchange.stream()
	}
}

func (c *serverCall) SetHeader(md metadata.MD) error {
	if len(md) == 0 {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.headersSent {
		return status.Error(codes.Internal, "grpc: the headers are sent already")
	}
	c.header = joined(c.header, md)
	return nil
}

func (c *serverCall) SendHeader(md metadata.MD) error {
	c.mutex.Lock()
	if c.headersSent {
		c.mutex.Unlock()
		return status.Error(codes.Internal, "grpc: the headers are sent already")
	}
	c.header = joined(c.header, md)
	c.mutex.Unlock()
	// A unary reply comes in one piece: its headers need no journey of their own.
	if c.unary {
		c.writeHeaders()
	} else {
		c.begin()
	}
	return nil
}

func (c *serverCall) SetTrailer(md metadata.MD) {
	if len(md) == 0 {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.trailer = joined(c.trailer, md)
}

// joined has names in lower case.
func joined(all, more metadata.MD) metadata.MD {
	if all == nil {
		all = make(metadata.MD, len(more))
	}
	for name, values := range more {
		all.Append(name, values...)
	}
	return all
}

// callContext is the context of a call. What most handlers do not need is made when a handler asks for it: timers, the map of metadata.
type callContext struct {
	call   *serverCall
	mutex  sync.Mutex
	timed  context.Context // with the deadline
	cancel context.CancelFunc
	ended  bool
}

func (c *callContext) Deadline() (time.Time, bool) { return c.call.deadline, c.call.hasDeadline }

func (c *callContext) inner() context.Context {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.timed == nil {
		if c.call.hasDeadline {
			c.timed, c.cancel = context.WithDeadline(context.Background(), c.call.deadline)
		} else {
			c.timed, c.cancel = context.WithCancel(context.Background())
		}
		if c.ended {
			c.cancel()
		}
	}
	return c.timed
}

func (c *callContext) Done() <-chan struct{} { return c.inner().Done() }

func (c *callContext) Err() error {
	c.mutex.Lock()
	timed, ended := c.timed, c.ended
	c.mutex.Unlock()
	if timed == nil && !ended && (!c.call.hasDeadline || time.Now().Before(c.call.deadline)) {
		return nil
	}
	return c.inner().Err()
}

func (c *callContext) Value(key any) any {
	switch key {
	case carry.IncomingKey{}:
		return c.call
	case carry.PeerKey{}:
		return here
	case carry.StreamKey{}:
		return ServerTransportStream(transportStream{c.call})
	}
	c.mutex.Lock()
	timed := c.timed
	c.mutex.Unlock()
	if timed == nil {
		return nil
	}
	// Contexts that are made of this one look for what they can be cancelled with.
	return timed.Value(key)
}

// end is where the handler has returned.
func (c *callContext) end() {
	c.mutex.Lock()
	c.ended = true
	cancel := c.cancel
	c.mutex.Unlock()
	if cancel != nil {
		cancel()
	}
}

// ServerTransportStream is what handlers of unary calls reach by their context.
type ServerTransportStream interface {
	Method() string
	SetHeader(md metadata.MD) error
	SendHeader(md metadata.MD) error
	SetTrailer(md metadata.MD) error
}

type transportStream struct{ call *serverCall }

func (s transportStream) Method() string                  { return s.call.method.path }
func (s transportStream) SetHeader(md metadata.MD) error  { return s.call.SetHeader(md) }
func (s transportStream) SendHeader(md metadata.MD) error { return s.call.SendHeader(md) }
func (s transportStream) SetTrailer(md metadata.MD) error {
	s.call.SetTrailer(md)
	return nil
}

// NewContextWithServerTransportStream is for tests of handlers.
func NewContextWithServerTransportStream(ctx context.Context, stream ServerTransportStream) context.Context {
	return context.WithValue(ctx, carry.StreamKey{}, stream)
}

// ServerTransportStreamFromContext is nil outside of handlers.
func ServerTransportStreamFromContext(ctx context.Context) ServerTransportStream {
	s, _ := ctx.Value(carry.StreamKey{}).(ServerTransportStream)
	return s
}

// callOf is nil outside of handlers.
func callOf(ctx context.Context) *serverCall {
	s, _ := ServerTransportStreamFromContext(ctx).(transportStream)
	return s.call
}

func streamOf(ctx context.Context) (ServerTransportStream, error) {
	if s := ServerTransportStreamFromContext(ctx); s != nil {
		return s, nil
	}
	return nil, status.Error(codes.Internal, "grpc: not the context of a handler")
}

// SetHeader adds to what is sent before the reply.
func SetHeader(ctx context.Context, md metadata.MD) error {
	if len(md) == 0 {
		return nil
	}
	s, err := streamOf(ctx)
	if err != nil {
		return err
	}
	return s.SetHeader(md)
}

// SendHeader sends it.
func SendHeader(ctx context.Context, md metadata.MD) error {
	s, err := streamOf(ctx)
	if err != nil {
		return err
	}
	return s.SendHeader(md)
}

// SetTrailer adds to what is sent behind the reply.
func SetTrailer(ctx context.Context, md metadata.MD) error {
	if len(md) == 0 {
		return nil
	}
	s, err := streamOf(ctx)
	if err != nil {
		return err
	}
	return s.SetTrailer(md)
}

// Method is the path of the method that is answered.
func Method(ctx context.Context) (string, bool) {
	s := ServerTransportStreamFromContext(ctx)
	if s == nil {
		return "", false
	}
	return s.Method(), true
}

// MethodFromServerStream is the path of the method that is answered.
func MethodFromServerStream(stream ServerStream) (string, bool) { return Method(stream.Context()) }

// SetSendCompressor chooses how the reply is compressed, before its headers are sent.
func SetSendCompressor(ctx context.Context, name string) error {
	call := callOf(ctx)
	if call == nil {
		return status.Error(codes.Internal, "grpc: not the context of a handler")
	}
	pack, err := packerOf(name, nil)
	if err != nil {
		return err
	}
	call.mutex.Lock()
	defer call.mutex.Unlock()
	if call.headersSent {
		return status.Error(codes.Internal, "grpc: the headers are sent already")
	}
	call.pack = pack
	return nil
}
