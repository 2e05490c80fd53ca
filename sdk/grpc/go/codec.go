package grpc

import (
	"math"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/internal/protocodec"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// Codec turns messages to bytes and back.
//
// Deprecated: package encoding has others.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
	String() string
}

// bytesCodec is what both old kinds have.
type bytesCodec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// coder is a codec of any kind. The zero one is that of protocol buffers.
type coder struct {
	bytes   bytesCodec
	buffers encoding.CodecV2
}

// coderOf finds the one for a subtype of application/grpc.
func coderOf(subtype string) (coder, bool) {
	if subtype == "" {
		subtype = protocodec.Name
	}
	if v2 := encoding.GetCodecV2(subtype); v2 != nil {
		if _, builtIn := v2.(protocodec.Codec); builtIn {
			return coder{}, true
		}
		return coder{buffers: v2}, true
	}
	if v1 := encoding.GetCodec(subtype); v1 != nil {
		return coder{bytes: v1}, true
	}
	return coder{}, false
}

// frame makes a frame of a message, in the room if there is enough. p may be nil.
func (c coder) frame(room []byte, v any, p *packer, limit int) ([]byte, error) {
	frame, err := c.plain(room, v)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: marshalling: %v", err)
	}
	wire.PutHead(frame, false)
	if p != nil {
		if frame, err = p.pack(frame); err != nil {
			return nil, err
		}
	}
	length := len(frame) - wire.FrameHead
	if length > limit {
		return nil, status.Errorf(codes.ResourceExhausted, "grpc: a message of %d bytes is to be sent, the limit is %d", length, limit)
	}
	if uint64(length) > math.MaxUint32 {
		return nil, status.Errorf(codes.ResourceExhausted, "grpc: a message of %d bytes", length)
	}
	return frame, nil
}

func (c coder) plain(room []byte, v any) ([]byte, error) {
	switch {
	case c.buffers != nil:
		buffers, err := c.buffers.Marshal(v)
		if err != nil {
			return nil, err
		}
		defer buffers.Free()
		frame := make([]byte, wire.FrameHead+buffers.Len())
		buffers.CopyTo(frame[wire.FrameHead:])
		return frame, nil
	case c.bytes != nil:
		message, err := c.bytes.Marshal(v)
		if err != nil {
			return nil, err
		}
		return append(make([]byte, wire.FrameHead, wire.FrameHead+len(message)), message...), nil
	}
	return protocodec.MarshalBehind(room, wire.FrameHead, v)
}

// unmarshal reads a message, of which only the built-in codec is known to keep nothing.
func (c coder) unmarshal(message []byte, v any) error {
	var err error
	switch {
	case c.buffers != nil:
		err = c.buffers.Unmarshal(mem.BufferSlice{mem.SliceBuffer(append([]byte(nil), message...))}, v)
	case c.bytes != nil:
		err = c.bytes.Unmarshal(append([]byte(nil), message...), v)
	default:
		err = protocodec.Unmarshal(message, v)
	}
	if err != nil {
		return status.Errorf(codes.Internal, "grpc: unmarshalling: %v", err)
	}
	return nil
}

const contentType = "application/grpc"

// subtypeOf is what stands behind application/grpc; false: it is something else.
func subtypeOf(content []byte) (string, bool) {
	if len(content) == len(contentType) && string(content) == contentType {
		return "", true
	}
	text := strings.ToLower(string(content))
	rest, ok := strings.CutPrefix(text, contentType)
	if !ok {
		return "", false
	}
	if rest == "" || rest[0] == ';' {
		return "", true
	}
	if rest[0] != '+' {
		return "", false
	}
	subtype, _, _ := strings.Cut(rest[1:], ";")
	return subtype, true
}

// contentTypeOf is the whole name.
func contentTypeOf(subtype string) string {
	if subtype == "" {
		return contentType
	}
	return contentType + "+" + subtype
}
