package grpc

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/internal/creds"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/stats"
)

// dialOptions is what the options of a ClientConn come to.
type dialOptions struct {
	unary        []UnaryClientInterceptor
	stream       []StreamClientInterceptor
	callOptions  []CallOption
	transport    creds.TransportCredentials
	bundle       creds.Bundle
	perCall      []creds.PerRPCCredentials
	handlers     []stats.Handler
	codec        Codec
	compressor   Compressor
	decompressor Decompressor
	authority    string
	userAgent    string
	methods      []methodConfig
	configError  error
}

// DialOption is about a ClientConn.
type DialOption interface{ apply(*dialOptions) }

// EmptyDialOption does nothing. It can be embedded.
type EmptyDialOption struct{}

func (EmptyDialOption) apply(*dialOptions) {}

// MaxHeaderListSizeDialOption is that of WithMaxHeaderListSize.
type MaxHeaderListSizeDialOption struct{ MaxHeaderListSize uint32 }

func (MaxHeaderListSizeDialOption) apply(*dialOptions) {}

type dialFunc func(*dialOptions)

func (f dialFunc) apply(o *dialOptions) { f(o) }

// WithUnaryInterceptor stands in front of unary calls, and of what is chained.
func WithUnaryInterceptor(f UnaryClientInterceptor) DialOption {
	return dialFunc(func(o *dialOptions) { o.unary = append([]UnaryClientInterceptor{f}, o.unary...) })
}

// WithChainUnaryInterceptor stands in front of unary calls; the first is the outermost.
func WithChainUnaryInterceptor(interceptors ...UnaryClientInterceptor) DialOption {
	return dialFunc(func(o *dialOptions) { o.unary = append(o.unary, interceptors...) })
}

// WithStreamInterceptor stands in front of streams, and of what is chained.
func WithStreamInterceptor(f StreamClientInterceptor) DialOption {
	return dialFunc(func(o *dialOptions) { o.stream = append([]StreamClientInterceptor{f}, o.stream...) })
}

// WithChainStreamInterceptor stands in front of streams; the first is the outermost.
func WithChainStreamInterceptor(interceptors ...StreamClientInterceptor) DialOption {
	return dialFunc(func(o *dialOptions) { o.stream = append(o.stream, interceptors...) })
}

// WithDefaultCallOptions are for all calls.
func WithDefaultCallOptions(cos ...CallOption) DialOption {
	return dialFunc(func(o *dialOptions) { o.callOptions = append(o.callOptions, cos...) })
}

// WithTransportCredentials are asked for, and protect nothing: no call leaves the process here.
func WithTransportCredentials(c creds.TransportCredentials) DialOption {
	return dialFunc(func(o *dialOptions) { o.transport = c })
}

// WithCredentialsBundle has credentials of both kinds.
func WithCredentialsBundle(b creds.Bundle) DialOption {
	return dialFunc(func(o *dialOptions) { o.bundle = b })
}

// WithInsecure is WithTransportCredentials(insecure.NewCredentials()).
//
// Deprecated: use that.
func WithInsecure() DialOption { return WithTransportCredentials(insecure.NewCredentials()) }

// WithPerRPCCredentials add metadata to each call.
func WithPerRPCCredentials(c creds.PerRPCCredentials) DialOption {
	return dialFunc(func(o *dialOptions) { o.perCall = append(o.perCall, c) })
}

// WithStatsHandler is told of each call.
func WithStatsHandler(h stats.Handler) DialOption {
	return dialFunc(func(o *dialOptions) {
		if h != nil {
			o.handlers = append(o.handlers, h)
		}
	})
}

// WithAuthority is what target and resolvers say otherwise. Nothing is dialled.
func WithAuthority(a string) DialOption { return dialFunc(func(o *dialOptions) { o.authority = a }) }

// WithUserAgent is sent with each call.
func WithUserAgent(s string) DialOption { return dialFunc(func(o *dialOptions) { o.userAgent = s }) }

// WithDefaultServiceConfig is JSON. Timeouts and limits of methods hold; retries and balancing are the host's part.
func WithDefaultServiceConfig(s string) DialOption {
	return dialFunc(func(o *dialOptions) { o.methods, o.configError = parseServiceConfig(s) })
}

// WithMaxMsgSize limits what is received.
//
// Deprecated: use WithDefaultCallOptions.
func WithMaxMsgSize(s int) DialOption { return WithDefaultCallOptions(MaxCallRecvMsgSize(s)) }

// WithCodec is for all calls.
//
// Deprecated: use WithDefaultCallOptions.
func WithCodec(c Codec) DialOption { return dialFunc(func(o *dialOptions) { o.codec = c }) }

// WithCompressor compresses what is sent.
//
// Deprecated: use UseCompressor.
func WithCompressor(cp Compressor) DialOption {
	return dialFunc(func(o *dialOptions) { o.compressor = cp })
}

// WithDecompressor is the other side of it.
//
// Deprecated: use encoding.RegisterCompressor.
func WithDecompressor(dc Decompressor) DialOption {
	return dialFunc(func(o *dialOptions) { o.decompressor = dc })
}

// What follows is about connections, and does nothing.

// BackoffConfig is the old kind.
//
// Deprecated: use ConnectParams.
type BackoffConfig struct{ MaxDelay time.Duration }

// DefaultBackoffConfig does nothing.
//
// Deprecated: use ConnectParams.
var DefaultBackoffConfig = BackoffConfig{MaxDelay: 2 * time.Minute}

// ConnectParams are about connecting.
type ConnectParams struct {
	Backoff           backoff.Config
	MinConnectTimeout time.Duration
}

// WithConnectParams does nothing.
func WithConnectParams(p ConnectParams) DialOption { return EmptyDialOption{} }

// WithBackoffConfig does nothing.
//
// Deprecated: use WithConnectParams.
func WithBackoffConfig(b BackoffConfig) DialOption { return EmptyDialOption{} }

// WithBackoffMaxDelay does nothing.
//
// Deprecated: use WithConnectParams.
func WithBackoffMaxDelay(md time.Duration) DialOption { return EmptyDialOption{} }

// WithBlock does nothing: there is nothing to wait for.
func WithBlock() DialOption { return EmptyDialOption{} }

// WithReturnConnectionError does nothing.
func WithReturnConnectionError() DialOption { return EmptyDialOption{} }

// FailOnNonTempDialError does nothing.
func FailOnNonTempDialError(f bool) DialOption { return EmptyDialOption{} }

// WithTimeout does nothing.
//
// Deprecated: use DialContext.
func WithTimeout(d time.Duration) DialOption { return EmptyDialOption{} }

// WithContextDialer does nothing: f is not called.
func WithContextDialer(f func(context.Context, string) (net.Conn, error)) DialOption {
	return EmptyDialOption{}
}

// WithDialer does nothing: f is not called.
//
// Deprecated: use WithContextDialer.
func WithDialer(f func(string, time.Duration) (net.Conn, error)) DialOption { return EmptyDialOption{} }

// WithResolvers does nothing.
func WithResolvers(rs ...resolver.Builder) DialOption { return EmptyDialOption{} }

// WithLocalDNSResolution does nothing.
func WithLocalDNSResolution() DialOption { return EmptyDialOption{} }

// WithKeepaliveParams does nothing.
func WithKeepaliveParams(kp keepalive.ClientParameters) DialOption { return EmptyDialOption{} }

// WithNoProxy does nothing.
func WithNoProxy() DialOption { return EmptyDialOption{} }

// WithDisableServiceConfig does nothing.
func WithDisableServiceConfig() DialOption { return EmptyDialOption{} }

// WithDisableRetry does nothing.
func WithDisableRetry() DialOption { return EmptyDialOption{} }

// WithDisableHealthCheck does nothing.
func WithDisableHealthCheck() DialOption { return EmptyDialOption{} }

// WithMaxCallAttempts does nothing.
func WithMaxCallAttempts(n int) DialOption { return EmptyDialOption{} }

// WithIdleTimeout does nothing.
func WithIdleTimeout(d time.Duration) DialOption { return EmptyDialOption{} }

// WithMaxHeaderListSize does nothing.
func WithMaxHeaderListSize(s uint32) DialOption { return MaxHeaderListSizeDialOption{s} }

// WithInitialWindowSize does nothing.
func WithInitialWindowSize(s int32) DialOption { return EmptyDialOption{} }

// WithInitialConnWindowSize does nothing.
func WithInitialConnWindowSize(s int32) DialOption { return EmptyDialOption{} }

// WithStaticStreamWindowSize does nothing.
func WithStaticStreamWindowSize(s int32) DialOption { return EmptyDialOption{} }

// WithStaticConnWindowSize does nothing.
func WithStaticConnWindowSize(s int32) DialOption { return EmptyDialOption{} }

// WithReadBufferSize does nothing.
func WithReadBufferSize(s int) DialOption { return EmptyDialOption{} }

// WithWriteBufferSize does nothing.
func WithWriteBufferSize(s int) DialOption { return EmptyDialOption{} }

// WithSharedWriteBuffer does nothing.
func WithSharedWriteBuffer(val bool) DialOption { return EmptyDialOption{} }
