package grpc

import (
	"reflect"
	"strings"

	"google.golang.org/grpc/internal/protocodec"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// warm lets the codec of protocol buffers make what it makes when a message of a type is first used. Each request starts from the memory that the
// program has then, so it would be made for each.
func warm() {
	protoregistry.GlobalTypes.RangeMessages(func(of protoreflect.MessageType) bool {
		// As handlers and callers have it: what it implements is found out then, too.
		var message any = of.New().Interface()
		if bytes, err := protocodec.MarshalBehind(nil, 0, message); err == nil {
			protocodec.Unmarshal(bytes, message)
		}
		return true
	})
	serving.RLock()
	defer serving.RUnlock()
	for _, s := range serving.servers {
		for _, one := range s.methods {
			if desc := s.services[serviceOf(one.path)]; desc != nil && one.service != nil {
				// Generated code asks what answers for this interface.
				reflect.New(reflect.TypeOf(desc.HandlerType).Elem()).Elem().Set(reflect.ValueOf(one.service))
			}
		}
	}
}

// serviceOf is the service of a method's path.
func serviceOf(path string) string { return path[1:strings.LastIndexByte(path, '/')] }
