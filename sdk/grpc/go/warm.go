package grpc

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// warm lets the codec of protocol buffers make what it makes when a message of a type is first used. Each request starts from the memory that the
// program has then, so it would be made for each.
func warm() {
	protoregistry.GlobalTypes.RangeMessages(func(of protoreflect.MessageType) bool {
		message := of.New().Interface()
		if bytes, err := proto.Marshal(message); err == nil {
			proto.Unmarshal(bytes, message)
		}
		return true
	})
}
