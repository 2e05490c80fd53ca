package grpc

import (
	"bytes"
	"compress/gzip"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/internal/wire"
	"google.golang.org/grpc/status"
)

// Compressor packs messages.
//
// Deprecated: package encoding has others.
type Compressor interface {
	Do(w io.Writer, p []byte) error
	Type() string
}

// Decompressor unpacks messages.
//
// Deprecated: package encoding has others.
type Decompressor interface {
	Do(r io.Reader) ([]byte, error)
	Type() string
}

type oldGzip struct{ level int }

// NewGZIPCompressor is the old kind.
//
// Deprecated: import encoding/gzip.
func NewGZIPCompressor() Compressor { return oldGzip{gzip.DefaultCompression} }

// NewGZIPCompressorWithLevel is the old kind.
//
// Deprecated: import encoding/gzip.
func NewGZIPCompressorWithLevel(level int) (Compressor, error) {
	if _, err := gzip.NewWriterLevel(io.Discard, level); err != nil {
		return nil, err
	}
	return oldGzip{level}, nil
}

func (oldGzip) Type() string { return "gzip" }

func (g oldGzip) Do(w io.Writer, p []byte) error {
	packer, err := gzip.NewWriterLevel(w, g.level)
	if err != nil {
		return err
	}
	if _, err := packer.Write(p); err != nil {
		return err
	}
	return packer.Close()
}

type oldGunzip struct{}

// NewGZIPDecompressor is the old kind.
//
// Deprecated: import encoding/gzip.
func NewGZIPDecompressor() Decompressor { return oldGunzip{} }

func (oldGunzip) Type() string { return "gzip" }

func (oldGunzip) Do(r io.Reader) ([]byte, error) {
	unpacker, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacker)
}

// packer is either kind; nil packs nothing.
type packer struct {
	name string
	old  Compressor
	new  encoding.Compressor
}

func packerOf(name string, old Compressor) (*packer, error) {
	if old != nil && (name == "" || name == old.Type()) {
		return &packer{name: old.Type(), old: old}, nil
	}
	if name == "" || name == encoding.Identity {
		return nil, nil
	}
	if c := encoding.GetCompressor(name); c != nil {
		return &packer{name: name, new: c}, nil
	}
	return nil, status.Errorf(codes.Internal, "grpc: there is no compressor %q", name)
}

// pack makes a compressed frame of one that is not.
func (p *packer) pack(frame []byte) ([]byte, error) {
	if p == nil || len(frame) == wire.FrameHead {
		return frame, nil
	}
	var packed bytes.Buffer
	packed.Write(frame[:wire.FrameHead])
	if p.old != nil {
		if err := p.old.Do(&packed, frame[wire.FrameHead:]); err != nil {
			return nil, status.Errorf(codes.Internal, "grpc: compressing: %v", err)
		}
	} else {
		w, err := p.new.Compress(&packed)
		if err == nil {
			_, err = w.Write(frame[wire.FrameHead:])
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return nil, status.Errorf(codes.Internal, "grpc: compressing: %v", err)
		}
	}
	wire.PutHead(packed.Bytes(), true)
	return packed.Bytes(), nil
}

// unpack takes a message that came compressed by that name.
func unpack(name string, old Decompressor, message []byte, limit int) ([]byte, error) {
	if name == "" || name == encoding.Identity {
		return nil, status.Error(codes.Internal, "grpc: a compressed message, and no grpc-encoding")
	}
	if old != nil && old.Type() == name {
		unpacked, err := old.Do(bytes.NewReader(message))
		if err == nil && len(unpacked) > limit {
			err = wire.TooLarge{Length: len(unpacked), Limit: limit}
		}
		return unpacked, unpackError(err)
	}
	c := encoding.GetCompressor(name)
	if c == nil {
		return nil, status.Errorf(codes.Unimplemented, "grpc: there is no decompressor %q", name)
	}
	r, err := c.Decompress(bytes.NewReader(message))
	if err != nil {
		return nil, unpackError(err)
	}
	unpacked, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(unpacked) > limit {
		err = wire.TooLarge{Length: len(unpacked), Limit: limit}
	}
	return unpacked, unpackError(err)
}

func unpackError(err error) error {
	switch err := err.(type) {
	case nil:
		return nil
	case wire.TooLarge:
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return status.Errorf(codes.Internal, "grpc: decompressing: %v", err)
}
