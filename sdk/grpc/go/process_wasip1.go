package grpc

import (
	"context"
	"net"
	"os"
)

// standardOutput is kept: a file without a user is closed.
var standardOutput = *os.Stdout

func init() {
	if net.DefaultResolver.Dial == nil {
		net.DefaultResolver.Dial = func(context.Context, string, string) (net.Conn, error) { return &localhost{}, nil }
	}
	// Standard output is the reply's body. What programs print belongs into the log, as what they print to standard error; also where a package has
	// taken the pointer before.
	*os.Stdout = *os.Stderr
}
