package grpc

import (
	"context"
	"fmt"
	"io"
)

// exchange is a request that is answered here.
type exchange interface {
	// target is the path, and maybe a query.
	target() []byte
	// headers are rows, valid until the next request.
	headers() []byte
	// read waits for more of the body, and is io.EOF at its end. If it is asked to share, others run meanwhile, and it ends with the context.
	read(ctx context.Context, into []byte, share bool) (int, error)
	// setStatus sets the status of HTTP.
	setStatus(code int32)
	setHeader(name, value string)
	addHeader(name, value string)
	setTrailer(name, value string)
	addTrailer(name, value string)
	// stream sends the head; from then on the body is sent while it is written.
	stream()
	// write writes all, and may wait.
	write(bytes []byte) error
}

// wireCall is a call to another function.
type wireCall interface {
	// read waits for more of the reply's body, and is io.EOF at its end.
	read(ctx context.Context, into []byte) (int, error)
	// write writes all, and may wait. It is io.EOF when the call is over.
	write(ctx context.Context, bytes []byte) error
	closeSend() error
	// head waits for the reply's headers: rows.
	head(ctx context.Context) ([]byte, error)
	// trailers are rows, once all is read. They are valid until the next call of it. eagain: not known yet.
	trailers() ([]byte, error)
	// close gives up what is not over.
	close()
}

// beginMax is how long a message may be to go with the beginning of a call: what the host takes at once.
const beginMax = 4 << 20

// beginWhole begins a call of one message.
func beginWhole(ctx context.Context, path string, head, message []byte, timeout int64) (wireCall, error) {
	if len(message) <= beginMax {
		return beginCall(path, head, message, timeout, true)
	}
	w, err := beginCall(path, head, nil, timeout, false)
	if err != nil {
		return nil, err
	}
	// io.EOF is a call that is over: its trailers say how.
	if err := w.write(ctx, message); err != nil && err != io.EOF {
		w.close()
		return nil, err
	}
	w.closeSend()
	return w, nil
}

// errno is an error number of WASI, preview 1.
type errno int32

const (
	e2big   errno = 1
	eagain  errno = 6
	eloop   errno = 32
	emfile  errno = 33
	einval  errno = 28
	enoent  errno = 44
	enotsup errno = 58
	epipe   errno = 64
)

func (e errno) Error() string {
	switch e {
	case e2big:
		return "larger than allowed"
	case eagain:
		return "not yet"
	case eloop:
		return "too many functions wait for each other"
	case emfile:
		return "too many calls at once"
	case einval:
		return "not a call"
	case enoent:
		return "the function's `calls` does not name this service"
	case enotsup:
		return "not in an application"
	case epipe:
		return "the call is over"
	}
	return fmt.Sprintf("error %d of WASI", int32(e))
}
