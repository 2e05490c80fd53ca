// Package proto has the codec of protocol buffers, which is the default. Importing it registers the codec.
package proto

import "google.golang.org/grpc/internal/protocodec"

// Name of the codec.
const Name = protocodec.Name
