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
	values := metadata.ValueFromIncomingContext(ctx, name)
	if len(values) == 0 {
		return nil
	}
	return []byte(values[len(values)-1])
}
