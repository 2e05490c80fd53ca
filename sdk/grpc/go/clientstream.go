package grpc

import (
	"context"
	"io"
	"runtime"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// clientStream is a call of streams that is made.
type clientStream struct {
	cc      *ClientConn
	ctx     context.Context
	cancel  context.CancelFunc
	method  string
	desc    *StreamDesc
	opts    []CallOption
	info    callInfo
	pack    *packer
	watch   *clientWatch
	head    []byte
	timeout int64

	// Sending. A call of one message begins with it, once it is known to be all.
	first []byte
	ended bool

	// Receiving.
	frames wire.Frames

	mutex    sync.Mutex
	stop     func() bool // ends waiting for the end of the context
	wire     wireCall
	header   metadata.MD
	hasHead  bool
	trailer  metadata.MD
	finished bool
	err      error // how it ended; io.EOF: well
}

// NewStream begins a call of streams.
func (cc *ClientConn) NewStream(ctx context.Context, desc *StreamDesc, method string, opts ...CallOption) (ClientStream, error) {
	if cc.stream != nil {
		return cc.stream(ctx, desc, cc, method, newClientStream, opts...)
	}
	return newClientStream(ctx, desc, cc, method, opts...)
}

func newClientStream(ctx context.Context, desc *StreamDesc, cc *ClientConn, method string, opts ...CallOption) (ClientStream, error) {
	s := &clientStream{cc: cc, method: rooted(method), desc: desc, opts: opts}
	var err error
	if s.pack, err = s.info.prepare(cc, opts); err != nil {
		return nil, err
	}
	if len(cc.options.handlers) > 0 {
		ctx, s.watch = beginWatch(ctx, cc, s.method, &s.info, desc)
	}
	s.ctx, s.cancel = cc.configure(ctx, s.method, &s.info)
	if err := s.prepare(); err != nil {
		s.finish(err)
		return nil, err
	}
	if s.ctx.Done() != nil {
		stop := context.AfterFunc(s.ctx, func() { s.finish(status.FromContextError(s.ctx.Err()).Err()) })
		s.mutex.Lock()
		s.stop = stop
		s.mutex.Unlock()
	}
	// A stream that is forgotten gives its descriptor back.
	runtime.SetFinalizer(s, (*clientStream).abandon)
	return s, nil
}

func (s *clientStream) prepare() (err error) {
	if s.timeout, err = s.cc.start(s.ctx); err != nil {
		return err
	}
	if s.head, err = s.cc.appendHead(nil, s.ctx, s.method, &s.info, s.pack); err != nil {
		return err
	}
	s.watch.outHeader(s.ctx, s.pack)
	if s.desc.ClientStreams {
		return s.begin(false)
	}
	return nil
}

func (s *clientStream) abandon() {
	if s.wire != nil {
		s.wire.close()
	}
}

// begin begins the call with what there is to send.
func (s *clientStream) begin(end bool) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.wire != nil {
		return nil
	}
	if s.finished {
		return s.err
	}
	var w wireCall
	var err error
	if end {
		w, err = beginWhole(s.ctx, s.method, s.head, s.first, s.timeout)
	} else {
		w, err = beginCall(s.method, s.head, s.first, s.timeout, false)
	}
	if err != nil {
		return beginError(s.method, err)
	}
	s.wire, s.first, s.head = w, nil, nil
	return nil
}

// Context is that of the call.
func (s *clientStream) Context() context.Context { return s.ctx }

// More is that of wire.Source.
func (s *clientStream) More(into []byte) (int, error) { return s.wire.read(s.ctx, into) }

func (s *clientStream) SendMsg(m any) error {
	if s.ended || s.first != nil {
		return status.Error(codes.Internal, "grpc: SendMsg after the last message")
	}
	if s.isFinished() {
		return io.EOF
	}
	frame, err := s.frame(m)
	if err != nil {
		s.finish(err)
		return err
	}
	if s.wire == nil {
		s.first = frame
		s.watch.outPayload(m, frame)
		return nil
	}
	if err := s.wire.write(s.ctx, frame); err != nil {
		if _, is := err.(errno); is || err == io.EOF {
			return io.EOF
		}
		return err
	}
	s.watch.outPayload(m, frame)
	return nil
}

func (s *clientStream) frame(m any) ([]byte, error) {
	if prepared, ok := m.(*PreparedMsg); ok {
		return prepared.frame, nil
	}
	return s.info.coder.frame(nil, m, s.pack, s.info.sendMax)
}

func (s *clientStream) CloseSend() error {
	if s.ended {
		return nil
	}
	s.ended = true
	if s.isFinished() {
		return nil
	}
	if s.wire == nil {
		// What goes wrong is told by receiving.
		if err := s.begin(true); err != nil {
			s.finish(err)
		}
		return nil
	}
	s.wire.closeSend()
	return nil
}

func (s *clientStream) isFinished() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.finished
}

func (s *clientStream) Header() (metadata.MD, error) {
	if s.hasHead {
		return s.header, nil
	}
	if s.isFinished() {
		if s.err == io.EOF {
			return nil, nil
		}
		return nil, s.err
	}
	if err := s.begin(s.ended); err != nil {
		s.finish(err)
		return nil, err
	}
	header, err := readHeader(s.ctx, s.wire)
	if err != nil {
		s.finish(err)
		return nil, err
	}
	s.setHeader(header)
	return header, nil
}

func (s *clientStream) setHeader(header metadata.MD) {
	s.mutex.Lock()
	first := !s.hasHead
	s.header, s.hasHead = header, true
	s.mutex.Unlock()
	if first {
		s.watch.inHeader(header)
	}
}

func (s *clientStream) Trailer() metadata.MD { return s.trailer }

func (s *clientStream) RecvMsg(m any) error {
	if s.isFinished() {
		return s.err
	}
	if err := s.begin(s.ended); err != nil {
		return s.finish(err)
	}
	if s.frames.Room == nil {
		s.frames.Room = make([]byte, unaryRoom)
	}
	message, compressed, err := s.frames.Next(s.info.receiveMax, s)
	switch {
	case err == io.EOF && !s.desc.ServerStreams:
		if err := s.end(); err != io.EOF {
			return err
		}
		return status.Error(codes.Internal, "grpc: the call succeeded without a reply")
	case err == io.EOF:
		return s.end()
	case err == io.ErrUnexpectedEOF:
		if err := s.end(); err != io.EOF {
			return err
		}
		return receiveError(err)
	case err != nil:
		return s.finish(receiveError(err))
	}
	if s.watch != nil && !s.hasHead {
		if header, err := readHeader(s.ctx, s.wire); err == nil {
			s.setHeader(header)
		}
	}
	if err := decode(s.ctx, s.wire, &s.info, message, compressed, m, s.header); err != nil {
		return s.finish(err)
	}
	s.watch.inPayload(m, message)
	if s.desc.ServerStreams {
		return nil
	}
	// The only message: the call is over when its status is known.
	switch _, _, err := s.frames.Next(s.info.receiveMax, s); {
	case err == io.EOF:
		if err := s.end(); err != io.EOF {
			return err
		}
		return nil
	case err == nil:
		return s.finish(status.Error(codes.Internal, "grpc: more than one reply"))
	default:
		return s.finish(receiveError(err))
	}
}

// end is where the reply's body ends: the trailers say how.
func (s *clientStream) end() error {
	if !s.hasHead {
		if header, err := readHeader(s.ctx, s.wire); err == nil {
			s.setHeader(header)
		}
	}
	rows, err := s.wire.trailers()
	if err != nil {
		return s.finish(status.Errorf(codes.Internal, "grpc: no trailers: %v", err))
	}
	s.trailer = wire.Metadata(rows)
	s.watch.inTrailer(s.trailer)
	if err := statusOf(rows); err != nil {
		return s.finish(err)
	}
	return s.finish(io.EOF)
}

// finish ends the call, if it is not over. The answer is how it ended.
func (s *clientStream) finish(err error) error {
	s.mutex.Lock()
	if s.finished {
		defer s.mutex.Unlock()
		return s.err
	}
	s.finished, s.err = true, err
	w, stop := s.wire, s.stop
	s.mutex.Unlock()
	if stop != nil {
		stop()
	}
	if w != nil {
		w.close()
	}
	if s.cancel != nil {
		s.cancel()
	}
	out := &outcome{header: s.header, trailer: s.trailer, err: err}
	if err == io.EOF {
		out.err = nil
	}
	s.watch.end(out)
	s.info.finish(s.cc, s.opts, out)
	return err
}

// PreparedMsg is a message that is encoded already.
type PreparedMsg struct{ frame []byte }

// Encode encodes it for a stream, and others like it.
func (p *PreparedMsg) Encode(s Stream, msg any) error {
	var err error
	switch s := s.(type) {
	case *clientStream:
		p.frame, err = s.info.coder.frame(nil, msg, s.pack, s.info.sendMax)
	case *serverCall:
		p.frame, err = s.frame(nil, msg)
	default:
		err = status.Errorf(codes.Internal, "grpc: a stream of type %T", s)
	}
	return err
}
