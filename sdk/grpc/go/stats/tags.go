package stats

import (
	"context"

	"google.golang.org/grpc/metadata"
)

const (
	tagsName  = "grpc-tags-bin"
	traceName = "grpc-trace-bin"
)

// SetTags sends tags with the calls that are made with ctx.
//
// Deprecated: it is metadata.
func SetTags(ctx context.Context, b []byte) context.Context {
	return metadata.AppendToOutgoingContext(ctx, tagsName, string(b))
}

// Tags are those that came.
//
// Deprecated: it is metadata.
func Tags(ctx context.Context) []byte { return last(ctx, tagsName) }

// SetTrace sends a trace with the calls that are made with ctx.
//
// Deprecated: it is metadata.
func SetTrace(ctx context.Context, b []byte) context.Context {
	return metadata.AppendToOutgoingContext(ctx, traceName, string(b))
}

// Trace is the one that came.
//
// Deprecated: it is metadata.
func Trace(ctx context.Context) []byte { return last(ctx, traceName) }

func last(ctx context.Context, name string) []byte {
	return lastOf(metadata.ValueFromIncomingContext(ctx, name))
}

func lastOf(values []string) []byte {
	if len(values) == 0 {
		return nil
	}
	return []byte(values[len(values)-1])
}

// OutgoingTags are those that are sent.
//
// Deprecated: it is metadata.
func OutgoingTags(ctx context.Context) []byte {
	return lastOf(metadata.ValueFromOutgoingContext(ctx, tagsName))
}

// OutgoingTrace is the one that is sent.
//
// Deprecated: it is metadata.
func OutgoingTrace(ctx context.Context) []byte {
	return lastOf(metadata.ValueFromOutgoingContext(ctx, traceName))
}

// SetIncomingTags is for tests.
//
// Deprecated: it is metadata.
func SetIncomingTags(ctx context.Context, b []byte) context.Context {
	return withIncoming(ctx, tagsName, b)
}

// SetIncomingTrace is for tests.
//
// Deprecated: it is metadata.
func SetIncomingTrace(ctx context.Context, b []byte) context.Context {
	return withIncoming(ctx, traceName, b)
}

func withIncoming(ctx context.Context, name string, b []byte) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	md.Set(name, string(b))
	return metadata.NewIncomingContext(ctx, md)
}
