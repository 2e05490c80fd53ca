// Package tap has what looks at a call before it is handled.
package tap

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// Info is the call.
type Info struct {
	FullMethodName string
	Header         metadata.MD
}

// ServerInHandle refuses a call by an error.
type ServerInHandle func(ctx context.Context, info *Info) (context.Context, error)
