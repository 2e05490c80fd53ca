package grpc

import "context"

// UnaryInvoker makes a call.
type UnaryInvoker func(ctx context.Context, method string, req, reply any, cc *ClientConn, opts ...CallOption) error

// UnaryClientInterceptor stands in front of one.
type UnaryClientInterceptor func(ctx context.Context, method string, req, reply any, cc *ClientConn, invoker UnaryInvoker, opts ...CallOption) error

// Streamer begins a call.
type Streamer func(ctx context.Context, desc *StreamDesc, cc *ClientConn, method string, opts ...CallOption) (ClientStream, error)

// StreamClientInterceptor stands in front of one.
type StreamClientInterceptor func(ctx context.Context, desc *StreamDesc, cc *ClientConn, method string, streamer Streamer, opts ...CallOption) (ClientStream, error)

// UnaryServerInfo is what an interceptor knows of a call.
type UnaryServerInfo struct {
	Server     any
	FullMethod string
}

// UnaryHandler answers a call.
type UnaryHandler func(ctx context.Context, req any) (any, error)

// UnaryServerInterceptor stands in front of one.
type UnaryServerInterceptor func(ctx context.Context, req any, info *UnaryServerInfo, handler UnaryHandler) (resp any, err error)

// StreamServerInfo is what an interceptor knows of a call.
type StreamServerInfo struct {
	FullMethod     string
	IsClientStream bool
	IsServerStream bool
}

// StreamServerInterceptor stands in front of a handler.
type StreamServerInterceptor func(srv any, ss ServerStream, info *StreamServerInfo, handler StreamHandler) error

func chainUnaryClient(all []UnaryClientInterceptor) UnaryClientInterceptor {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	first, rest := all[0], chainUnaryClient(all[1:])
	return func(ctx context.Context, method string, req, reply any, cc *ClientConn, invoker UnaryInvoker, opts ...CallOption) error {
		next := func(ctx context.Context, method string, req, reply any, cc *ClientConn, opts ...CallOption) error {
			return rest(ctx, method, req, reply, cc, invoker, opts...)
		}
		return first(ctx, method, req, reply, cc, next, opts...)
	}
}

func chainStreamClient(all []StreamClientInterceptor) StreamClientInterceptor {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	first, rest := all[0], chainStreamClient(all[1:])
	return func(ctx context.Context, desc *StreamDesc, cc *ClientConn, method string, streamer Streamer, opts ...CallOption) (ClientStream, error) {
		next := func(ctx context.Context, desc *StreamDesc, cc *ClientConn, method string, opts ...CallOption) (ClientStream, error) {
			return rest(ctx, desc, cc, method, streamer, opts...)
		}
		return first(ctx, desc, cc, method, next, opts...)
	}
}

func chainUnaryServer(all []UnaryServerInterceptor) UnaryServerInterceptor {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	first, rest := all[0], chainUnaryServer(all[1:])
	return func(ctx context.Context, req any, info *UnaryServerInfo, handler UnaryHandler) (any, error) {
		return first(ctx, req, info, func(ctx context.Context, req any) (any, error) { return rest(ctx, req, info, handler) })
	}
}

func chainStreamServer(all []StreamServerInterceptor) StreamServerInterceptor {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	first, rest := all[0], chainStreamServer(all[1:])
	return func(srv any, ss ServerStream, info *StreamServerInfo, handler StreamHandler) error {
		return first(srv, ss, info, func(srv any, ss ServerStream) error { return rest(srv, ss, info, handler) })
	}
}
