package grpc

import (
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/internal/creds"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/tap"
)

// serverOptions is what the options of a Server come to.
type serverOptions struct {
	unary               []UnaryServerInterceptor
	stream              []StreamServerInterceptor
	hasUnary, hasStream bool
	handlers            []stats.Handler
	unknown             *StreamDesc
	tap                 tap.ServerInHandle
	receiveMax, sendMax int
	coder               coder
	coderIsSet          bool
	compressor          Compressor
	decompressor        Decompressor
}

// ServerOption is about a Server.
type ServerOption interface{ apply(*serverOptions) }

// EmptyServerOption does nothing. It can be embedded.
type EmptyServerOption struct{}

func (EmptyServerOption) apply(*serverOptions) {}

// MaxHeaderListSizeServerOption is that of MaxHeaderListSize.
type MaxHeaderListSizeServerOption struct{ MaxHeaderListSize uint32 }

func (MaxHeaderListSizeServerOption) apply(*serverOptions) {}

type serverFunc func(*serverOptions)

func (f serverFunc) apply(o *serverOptions) { f(o) }

// UnaryInterceptor stands in front of unary handlers, and of what is chained. There is one.
func UnaryInterceptor(i UnaryServerInterceptor) ServerOption {
	return serverFunc(func(o *serverOptions) {
		if o.hasUnary {
			panic("grpc: a second UnaryInterceptor: use ChainUnaryInterceptor")
		}
		o.hasUnary = true
		o.unary = append([]UnaryServerInterceptor{i}, o.unary...)
	})
}

// ChainUnaryInterceptor stands in front of unary handlers; the first is the outermost.
func ChainUnaryInterceptor(interceptors ...UnaryServerInterceptor) ServerOption {
	return serverFunc(func(o *serverOptions) { o.unary = append(o.unary, interceptors...) })
}

// StreamInterceptor stands in front of handlers of streams, and of what is chained. There is one.
func StreamInterceptor(i StreamServerInterceptor) ServerOption {
	return serverFunc(func(o *serverOptions) {
		if o.hasStream {
			panic("grpc: a second StreamInterceptor: use ChainStreamInterceptor")
		}
		o.hasStream = true
		o.stream = append([]StreamServerInterceptor{i}, o.stream...)
	})
}

// ChainStreamInterceptor stands in front of handlers of streams; the first is the outermost.
func ChainStreamInterceptor(interceptors ...StreamServerInterceptor) ServerOption {
	return serverFunc(func(o *serverOptions) { o.stream = append(o.stream, interceptors...) })
}

// StatsHandler is told of each call.
func StatsHandler(h stats.Handler) ServerOption {
	return serverFunc(func(o *serverOptions) {
		if h != nil {
			o.handlers = append(o.handlers, h)
		}
	})
}

// UnknownServiceHandler answers what nothing else does.
func UnknownServiceHandler(streamHandler StreamHandler) ServerOption {
	return serverFunc(func(o *serverOptions) {
		o.unknown = &StreamDesc{StreamName: "unknown", Handler: streamHandler, ClientStreams: true, ServerStreams: true}
	})
}

// InTapHandle is asked before a call is handled.
func InTapHandle(h tap.ServerInHandle) ServerOption {
	return serverFunc(func(o *serverOptions) { o.tap = h })
}

// MaxRecvMsgSize limits what is received: 4 MiB.
func MaxRecvMsgSize(m int) ServerOption {
	return serverFunc(func(o *serverOptions) { o.receiveMax = m })
}

// MaxMsgSize is MaxRecvMsgSize.
//
// Deprecated: use that.
func MaxMsgSize(m int) ServerOption { return MaxRecvMsgSize(m) }

// MaxSendMsgSize limits what is sent.
func MaxSendMsgSize(m int) ServerOption { return serverFunc(func(o *serverOptions) { o.sendMax = m }) }

// CustomCodec is for all calls.
//
// Deprecated: use encoding.RegisterCodec.
func CustomCodec(codec Codec) ServerOption {
	return serverFunc(func(o *serverOptions) { o.coder, o.coderIsSet = coder{bytes: codec}, true })
}

// ForceServerCodec is for all calls.
func ForceServerCodec(codec encoding.Codec) ServerOption {
	return serverFunc(func(o *serverOptions) { o.coder, o.coderIsSet = coder{bytes: codec}, true })
}

// ForceServerCodecV2 is for all calls.
func ForceServerCodecV2(codecV2 encoding.CodecV2) ServerOption {
	return serverFunc(func(o *serverOptions) { o.coder, o.coderIsSet = coder{buffers: codecV2}, true })
}

// RPCCompressor compresses what is sent.
//
// Deprecated: use encoding.RegisterCompressor.
func RPCCompressor(cp Compressor) ServerOption {
	return serverFunc(func(o *serverOptions) { o.compressor = cp })
}

// RPCDecompressor is the other side of it.
//
// Deprecated: use encoding.RegisterCompressor.
func RPCDecompressor(dc Decompressor) ServerOption {
	return serverFunc(func(o *serverOptions) { o.decompressor = dc })
}

// What follows is about connections, and does nothing.

// Creds does nothing: the server in front ends TLS.
func Creds(c creds.TransportCredentials) ServerOption { return EmptyServerOption{} }

// ConnectionTimeout does nothing.
func ConnectionTimeout(d time.Duration) ServerOption { return EmptyServerOption{} }

// KeepaliveParams does nothing.
func KeepaliveParams(kp keepalive.ServerParameters) ServerOption { return EmptyServerOption{} }

// KeepaliveEnforcementPolicy does nothing.
func KeepaliveEnforcementPolicy(kep keepalive.EnforcementPolicy) ServerOption {
	return EmptyServerOption{}
}

// MaxConcurrentStreams does nothing: the application's configuration limits what runs at once.
func MaxConcurrentStreams(n uint32) ServerOption { return EmptyServerOption{} }

// MaxHeaderListSize does nothing.
func MaxHeaderListSize(s uint32) ServerOption { return MaxHeaderListSizeServerOption{s} }

// HeaderTableSize does nothing.
func HeaderTableSize(s uint32) ServerOption { return EmptyServerOption{} }

// NumStreamWorkers does nothing.
func NumStreamWorkers(numServerWorkers uint32) ServerOption { return EmptyServerOption{} }

// WaitForHandlers does nothing.
func WaitForHandlers(w bool) ServerOption { return EmptyServerOption{} }

// InitialWindowSize does nothing.
func InitialWindowSize(s int32) ServerOption { return EmptyServerOption{} }

// InitialConnWindowSize does nothing.
func InitialConnWindowSize(s int32) ServerOption { return EmptyServerOption{} }

// StaticStreamWindowSize does nothing.
func StaticStreamWindowSize(s int32) ServerOption { return EmptyServerOption{} }

// StaticConnWindowSize does nothing.
func StaticConnWindowSize(s int32) ServerOption { return EmptyServerOption{} }

// ReadBufferSize does nothing.
func ReadBufferSize(s int) ServerOption { return EmptyServerOption{} }

// WriteBufferSize does nothing.
func WriteBufferSize(s int) ServerOption { return EmptyServerOption{} }

// SharedWriteBuffer does nothing.
func SharedWriteBuffer(val bool) ServerOption { return EmptyServerOption{} }
