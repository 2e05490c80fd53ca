package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrServerStopped is what Serve fails with behind Stop.
var ErrServerStopped = errors.New("grpc: the server is stopped")

// MethodHandler is what generated code has for a unary method.
type MethodHandler func(srv any, ctx context.Context, dec func(any) error, interceptor UnaryServerInterceptor) (any, error)

// MethodDesc describes a unary method.
type MethodDesc struct {
	MethodName string
	Handler    MethodHandler
}

// ServiceDesc describes a service. Generated code has one.
type ServiceDesc struct {
	ServiceName string
	HandlerType any // pointer to the interface of what answers
	Methods     []MethodDesc
	Streams     []StreamDesc
	Metadata    any
}

// ServiceRegistrar is what services are registered at.
type ServiceRegistrar interface {
	RegisterService(desc *ServiceDesc, impl any)
}

// MethodInfo describes a method to reflection.
type MethodInfo struct {
	Name           string
	IsClientStream bool
	IsServerStream bool
}

// ServiceInfo describes a service to reflection.
type ServiceInfo struct {
	Methods  []MethodInfo
	Metadata any
}

// method is what answers a path.
type method struct {
	path    string
	service any
	unary   MethodHandler
	stream  *StreamDesc // none of a unary method
	server  *Server
}

// Server answers calls. What serves, and where, the configuration of the function says; a listener is not used.
type Server struct {
	options serverOptions
	unary   UnaryServerInterceptor
	stream  StreamServerInterceptor

	mutex    sync.Mutex
	services map[string]*ServiceDesc
	methods  map[string]*method
	serves   bool
	stopped  bool
	done     chan struct{} // closed by Stop
}

// NewServer makes one.
func NewServer(opt ...ServerOption) *Server {
	s := &Server{services: map[string]*ServiceDesc{}, methods: map[string]*method{}, done: make(chan struct{})}
	s.options.receiveMax, s.options.sendMax = receiveDefault, sendDefault
	for _, option := range opt {
		option.apply(&s.options)
	}
	s.unary, s.stream = chainUnaryServer(s.options.unary), chainStreamServer(s.options.stream)
	return s
}

// fatal ends the program: it is wrong.
func fatal(format string, a ...any) {
	fmt.Fprintf(os.Stderr, "grpc: "+format+"\n", a...)
	os.Exit(1)
}

// RegisterService registers what answers a service. It has to come before Serve.
func (s *Server) RegisterService(sd *ServiceDesc, ss any) {
	if ss != nil {
		wanted := reflect.TypeOf(sd.HandlerType).Elem()
		if has := reflect.TypeOf(ss); !has.Implements(wanted) {
			fatal("%v does not implement %v, which answers the service %s", has, wanted, sd.ServiceName)
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.serves {
		fatal("the service %s is registered when the server serves already", sd.ServiceName)
	}
	if s.services[sd.ServiceName] != nil {
		fatal("the service %s is registered twice", sd.ServiceName)
	}
	s.services[sd.ServiceName] = sd
	for _, one := range sd.Methods {
		path := "/" + sd.ServiceName + "/" + one.MethodName
		s.methods[path] = &method{path: path, service: ss, unary: one.Handler, server: s}
	}
	for i := range sd.Streams {
		path := "/" + sd.ServiceName + "/" + sd.Streams[i].StreamName
		s.methods[path] = &method{path: path, service: ss, stream: &sd.Streams[i], server: s}
	}
}

// GetServiceInfo has all services by their names.
func (s *Server) GetServiceInfo() map[string]ServiceInfo {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := make(map[string]ServiceInfo, len(s.services))
	for name, desc := range s.services {
		info := ServiceInfo{Metadata: desc.Metadata}
		for _, one := range desc.Methods {
			info.Methods = append(info.Methods, MethodInfo{Name: one.MethodName})
		}
		for _, one := range desc.Streams {
			info.Methods = append(info.Methods, MethodInfo{one.StreamName, one.ClientStreams, one.ServerStreams})
		}
		all[name] = info
	}
	return all
}

// serving are all servers that serve, in their order.
var serving struct {
	sync.RWMutex
	servers []*Server
	once    sync.Once
}

// served is closed when the first server serves.
var served = make(chan struct{})

func isServing() bool {
	serving.RLock()
	defer serving.RUnlock()
	return len(serving.servers) > 0
}

// Serve takes requests until Stop. The listener says nothing: it stays as it is until then.
func (s *Server) Serve(lis net.Listener) error {
	s.mutex.Lock()
	if s.stopped {
		s.mutex.Unlock()
		lis.Close()
		return ErrServerStopped
	}
	first := !s.serves
	s.serves = true
	s.mutex.Unlock()
	if first {
		serving.Lock()
		serving.servers = append(serving.servers, s)
		serving.Unlock()
		serving.once.Do(func() { close(served) })
	}
	<-s.done
	lis.Close()
	return nil
}

// Stop lets Serve return.
func (s *Server) Stop() {
	s.mutex.Lock()
	if s.stopped {
		s.mutex.Unlock()
		return
	}
	s.stopped = true
	close(s.done)
	s.mutex.Unlock()
	serving.Lock()
	defer serving.Unlock()
	for i, one := range serving.servers {
		if one == s {
			serving.servers = append(serving.servers[:i:i], serving.servers[i+1:]...)
			return
		}
	}
}

// GracefulStop is Stop: the host waits for what runs.
func (s *Server) GracefulStop() { s.Stop() }

// find looks for what answers a path. Where nothing does, a server that handles what is unknown does; otherwise the error says what is unknown.
func find(path []byte) (*method, error) {
	serving.RLock()
	defer serving.RUnlock()
	for _, s := range serving.servers {
		if m := s.methods[string(path)]; m != nil {
			return m, nil
		}
	}
	text := string(path)
	for _, s := range serving.servers {
		if s.options.unknown != nil {
			return &method{path: text, stream: s.options.unknown, server: s}, nil
		}
	}
	at := strings.LastIndexByte(text, '/')
	if at <= 0 {
		return nil, status.Errorf(codes.Unimplemented, "grpc: %q is no path of a method", text)
	}
	for _, s := range serving.servers {
		if s.services[text[1:at]] != nil {
			return nil, status.Errorf(codes.Unimplemented, "grpc: the service %s has no method %s", text[1:at], text[at+1:])
		}
	}
	return nil, status.Errorf(codes.Unimplemented, "grpc: there is no service %s", text[1:at])
}
