package service

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// RequestID is the metadata that has the number of a client's request. It is passed on from call to call.
const RequestID = "x-request-id"

func logUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	start := time.Now()
	reply, err := handler(ctx, request)
	answered(ctx, info.FullMethod, start, err)
	return reply, err
}

func logStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	start := time.Now()
	err := handler(server, stream)
	answered(stream.Context(), info.FullMethod, start, err)
	return err
}

func answered(ctx context.Context, method string, start time.Time, err error) {
	slog.InfoContext(ctx, "answered", "method", method, "status", status.Code(err).String(), "duration", time.Since(start), "request", requestID(ctx))
}

// requestID is the number of the request that is answered.
func requestID(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, RequestID); len(values) > 0 {
		return values[0]
	}
	return ""
}

func passOn(ctx context.Context) context.Context {
	if id := requestID(ctx); id != "" {
		return metadata.AppendToOutgoingContext(ctx, RequestID, id)
	}
	return ctx
}

func passOnUnary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoker grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoker(passOn(ctx), method, request, reply, conn, options...)
}

func passOnStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return streamer(passOn(ctx), desc, conn, method, options...)
}
