package grpc

import (
	"context"
	"time"

	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
)

// watch tells handlers of statistics of a call. nil tells none.
type watch struct {
	ctx      context.Context
	conns    []context.Context
	handlers []stats.Handler
	client   bool
	method   string
	begin    time.Time
}

type (
	clientWatch struct {
		watch
		authority string
	}
	serverWatch struct{ watch }
)

// tell tells all.
func (w *watch) tell(what stats.RPCStats) {
	for _, handler := range w.handlers {
		handler.HandleRPC(w.ctx, what)
	}
}

// start lets handlers put what they need into the context: a connection begins, and a call on it.
func (w *watch) start(ctx context.Context, failFast bool, desc *StreamDesc) context.Context {
	for _, handler := range w.handlers {
		ctx = handler.TagConn(ctx, &stats.ConnTagInfo{RemoteAddr: here.Addr, LocalAddr: here.LocalAddr})
		w.conns = append(w.conns, ctx)
		handler.HandleConn(ctx, &stats.ConnBegin{Client: w.client})
	}
	for _, handler := range w.handlers {
		ctx = handler.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: w.method, FailFast: failFast})
	}
	w.ctx, w.begin = ctx, time.Now()
	w.tell(&stats.Begin{
		Client: w.client, BeginTime: w.begin, FailFast: failFast, IsClientStream: desc.ClientStreams, IsServerStream: desc.ServerStreams,
	})
	return ctx
}

func (w *watch) finish(out *outcome) {
	w.tell(&stats.End{Client: w.client, BeginTime: w.begin, EndTime: time.Now(), Trailer: out.trailer, Error: out.err})
	for i, handler := range w.handlers {
		handler.HandleConn(w.conns[i], &stats.ConnEnd{Client: w.client})
	}
}

func (w *watch) receive(message any, bytes []byte) {
	w.tell(&stats.InPayload{
		Client: w.client, Payload: message, Length: len(bytes), CompressedLength: len(bytes), WireLength: len(bytes) + wire.FrameHead, RecvTime: time.Now(),
	})
}

func (w *watch) send(message any, frame []byte) {
	length := len(frame) - wire.FrameHead
	w.tell(&stats.OutPayload{
		Client: w.client, Payload: message, Length: length, CompressedLength: length, WireLength: len(frame), SentTime: time.Now(),
	})
}

func packName(pack *packer) string {
	if pack == nil {
		return ""
	}
	return pack.name
}

func beginWatch(ctx context.Context, cc *ClientConn, method string, info *callInfo, desc *StreamDesc) (context.Context, *clientWatch) {
	w := &clientWatch{watch{handlers: cc.options.handlers, client: true, method: method}, cc.endpoint()}
	ctx = w.start(ctx, info.failFast, desc)
	return ctx, w
}

func (w *clientWatch) outHeader(ctx context.Context, pack *packer) {
	if w == nil {
		return
	}
	header, _ := metadata.FromOutgoingContext(ctx)
	w.tell(&stats.OutHeader{
		Client: true, Compression: packName(pack), Header: header, Authority: w.authority, FullMethod: w.method, RemoteAddr: here.Addr, LocalAddr: here.LocalAddr,
	})
}

func (w *clientWatch) outPayload(message any, frame []byte) {
	if w != nil {
		w.send(message, frame)
	}
}

func (w *clientWatch) inHeader(header metadata.MD) {
	if w != nil {
		w.tell(&stats.InHeader{Client: true, Header: header, FullMethod: w.method, RemoteAddr: here.Addr, LocalAddr: here.LocalAddr})
	}
}

func (w *clientWatch) inPayload(message any, bytes []byte) {
	if w != nil {
		w.receive(message, bytes)
	}
}

func (w *clientWatch) inTrailer(trailer metadata.MD) {
	if w != nil {
		w.tell(&stats.InTrailer{Client: true, Trailer: trailer})
	}
}

func (w *clientWatch) end(out *outcome) {
	if w != nil {
		w.finish(out)
	}
}

func beginServerWatch(ctx context.Context, c *serverCall) (context.Context, *serverWatch) {
	desc := c.method.stream
	if desc == nil {
		desc = &StreamDesc{}
	}
	w := &serverWatch{watch{handlers: c.method.server.options.handlers, method: c.method.path}}
	ctx = w.start(ctx, false, desc)
	w.tell(&stats.InHeader{
		Compression: c.receivePacker, Header: metadata.MD(c.Metadata()).Copy(), FullMethod: w.method, WireLength: len(c.rows),
		RemoteAddr: here.Addr, LocalAddr: here.LocalAddr,
	})
	return ctx, w
}

func (w *serverWatch) inPayload(message any, bytes []byte) {
	if w != nil {
		w.receive(message, bytes)
	}
}

func (w *serverWatch) outPayload(message any, frame []byte) {
	if w != nil {
		w.send(message, frame)
	}
}

func (w *serverWatch) outHeader(header metadata.MD, pack *packer) {
	if w != nil {
		w.tell(&stats.OutHeader{Header: header.Copy(), Compression: packName(pack), FullMethod: w.method})
	}
}

func (w *serverWatch) outTrailer(trailer metadata.MD) {
	if w != nil {
		w.tell(&stats.OutTrailer{Trailer: trailer.Copy()})
	}
}

func (w *serverWatch) end(out *outcome) {
	if w != nil {
		w.finish(out)
	}
}
