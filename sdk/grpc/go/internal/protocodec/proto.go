// Package protocodec has the codec of protocol buffers, which is the default.
package protocodec

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/runtime/protoiface"
	"google.golang.org/protobuf/runtime/protoimpl"
)

// Name of the codec.
const Name = "proto"

func init() { encoding.RegisterCodecV2(Codec{}) }

// Codec is the codec. The package grpc knows it, and leaves buffers out.
type Codec struct{}

// Name is proto.
func (Codec) Name() string { return Name }

// Message is the message that v is, of the present or the first kind of generated code.
func Message(v any) (proto.Message, error) {
	switch m := v.(type) {
	case proto.Message:
		return m, nil
	case protoiface.MessageV1:
		return protoimpl.X.ProtoMessageV2Of(m), nil
	}
	return nil, fmt.Errorf("proto: a %T is no message of protocol buffers", v)
}

// MarshalBehind leaves head bytes in front. The room is used if it is large enough.
func MarshalBehind(room []byte, head int, v any) ([]byte, error) {
	message, err := Message(v)
	if err != nil {
		return nil, err
	}
	if size := head + proto.Size(message); size > cap(room) {
		room = make([]byte, head, size)
	}
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(room[:head], message)
}

// Unmarshal of one slice, of which nothing is kept.
func Unmarshal(data []byte, v any) error {
	message, err := Message(v)
	if err != nil {
		return err
	}
	return proto.Unmarshal(data, message)
}

// Marshal is that of encoding.CodecV2.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	bytes, err := MarshalBehind(nil, 0, v)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(bytes)}, nil
}

// Unmarshal is that of encoding.CodecV2.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if len(data) == 1 {
		return Unmarshal(data[0].ReadOnlyData(), v)
	}
	return Unmarshal(data.Materialize(), v)
}
