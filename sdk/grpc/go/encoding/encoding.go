// Package encoding knows codecs and compressors by name.
package encoding

import (
	"io"
	"strings"

	"google.golang.org/grpc/mem"
)

// Identity is the name of no compression.
const Identity = "identity"

// Compressor packs messages.
type Compressor interface {
	Compress(w io.Writer) (io.WriteCloser, error)
	Decompress(r io.Reader) (io.Reader, error)
	Name() string
}

// Codec turns messages to bytes and back.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
	Name() string
}

// CodecV2 is the same with buffers.
type CodecV2 interface {
	Marshal(v any) (out mem.BufferSlice, err error)
	Unmarshal(data mem.BufferSlice, v any) error
	Name() string
}

var (
	compressors = map[string]Compressor{}
	codecs      = map[string]any{} // Codec or CodecV2
)

// RegisterCompressor is for init functions.
func RegisterCompressor(c Compressor) { compressors[c.Name()] = c }

// GetCompressor is nil when there is none of that name.
func GetCompressor(name string) Compressor { return compressors[name] }

// RegisterCodec is for init functions. The name is the subtype of application/grpc+NAME; proto is the default.
func RegisterCodec(codec Codec) { register(codec.Name(), codec) }

// RegisterCodecV2 is the same.
func RegisterCodecV2(codec CodecV2) { register(codec.Name(), codec) }

func register(name string, codec any) {
	if name == "" {
		panic("encoding: a codec without a name")
	}
	codecs[strings.ToLower(name)] = codec
}

// GetCodec is nil when there is none of that name and kind.
func GetCodec(contentSubtype string) Codec {
	codec, _ := codecs[contentSubtype].(Codec)
	return codec
}

// GetCodecV2 is nil when there is none of that name and kind.
func GetCodecV2(contentSubtype string) CodecV2 {
	codec, _ := codecs[contentSubtype].(CodecV2)
	return codec
}
