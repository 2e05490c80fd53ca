// Package reflection is where programs offer reflection. The server in front of the function answers it, from the descriptors of the application: so
// there is nothing to register.
package reflection

import (
	"google.golang.org/grpc"
	v1reflectiongrpc "google.golang.org/grpc/reflection/grpc_reflection_v1"
	v1alphareflectiongrpc "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// ServiceInfoProvider knows its services.
type ServiceInfoProvider interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}

// GRPCServer is a server.
type GRPCServer interface {
	grpc.ServiceRegistrar
	ServiceInfoProvider
}

var _ GRPCServer = (*grpc.Server)(nil)

// ExtensionResolver finds extensions.
type ExtensionResolver interface {
	protoregistry.ExtensionTypeResolver
	RangeExtensionsByMessage(message protoreflect.FullName, f func(protoreflect.ExtensionType) bool)
}

// DescriptorResolver finds descriptors. It is protodesc.Resolver by another name: that package brings the descriptors of descriptors.
type DescriptorResolver = interface {
	FindFileByPath(string) (protoreflect.FileDescriptor, error)
	FindDescriptorByName(protoreflect.FullName) (protoreflect.Descriptor, error)
}

// ServerOptions are for NewServer.
type ServerOptions struct {
	Services           ServiceInfoProvider
	DescriptorResolver DescriptorResolver
	ExtensionResolver  ExtensionResolver
}

// Register does nothing.
func Register(s GRPCServer) {}

// RegisterV1 does nothing.
func RegisterV1(s GRPCServer) {}

// NewServer answers that it implements nothing.
func NewServer(opts ServerOptions) v1alphareflectiongrpc.ServerReflectionServer {
	return v1alphareflectiongrpc.UnimplementedServerReflectionServer{}
}

// NewServerV1 answers that it implements nothing.
func NewServerV1(opts ServerOptions) v1reflectiongrpc.ServerReflectionServer {
	return v1reflectiongrpc.UnimplementedServerReflectionServer{}
}
