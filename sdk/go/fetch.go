package sledge

import (
	"encoding/binary"
	"io"
	"time"
)

// Fetch is a request to another server, to a host in the function's http_hosts.
type Fetch struct {
	Method  string // default: GET
	URL     string
	Headers []Field
	Body    []byte
	// How long the head of the response and each piece of its body may take; default: 30 s.
	HeadTimeout, PieceTimeout time.Duration
}

// Response is the response to a [Fetch]. Reading it reads the body. Close it.
type Response struct{ handle int32 }

var _ io.ReadCloser = (*Response)(nil)

// Send sends the request and does not wait for the response.
func (f *Fetch) Send() (*Response, error) {
	method := f.Method
	if method == "" {
		method = "GET"
	}
	var rows []byte
	for _, field := range f.Headers {
		rows = appendRow(appendRow(rows, field.Name), field.Value)
	}
	times := binary.LittleEndian.AppendUint32(nil, milliseconds(f.HeadTimeout))
	times = binary.LittleEndian.AppendUint32(times, milliseconds(f.PieceTimeout))
	handle, err := checked(fetchSend(method, f.URL, at(rows), uint32(len(rows)), at(f.Body), uint32(len(f.Body)), at(times)))
	if err != nil {
		return nil, err
	}
	return &Response{int32(handle)}, nil
}

// milliseconds rounds up; 0 stands for the default.
func milliseconds(duration time.Duration) uint32 {
	return uint32((duration + time.Millisecond - 1) / time.Millisecond)
}

// Status waits for the head and returns its status.
func (r *Response) Status() (int, error) { return checked(fetchStatus(r.handle)) }

// Headers waits for the head and returns its headers; names are in lower case.
func (r *Response) Headers() ([]Field, error) {
	rows, err := text(func(at pointer, room uint32) int32 { return fetchHeaders(r.handle, at, room) })
	return fields(rows), err
}

// Read waits for more of the body.
func (r *Response) Read(buffer []byte) (int, error) {
	if len(buffer) == 0 {
		return 0, nil
	}
	count, err := checked(fetchRead(r.handle, at(buffer), uint32(len(buffer))))
	if err == nil && count == 0 {
		err = io.EOF
	}
	return count, err
}

// Close gives the response up if it has not been read to its end.
func (r *Response) Close() error {
	_, err := checked(fetchClose(r.handle))
	return err
}
