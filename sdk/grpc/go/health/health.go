// Package health has a server of the service grpc.health.v1.Health.
package health

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// listMax is how many services List has.
const listMax = 100

// Server answers with what it was told last.
type Server struct {
	healthgrpc.UnimplementedHealthServer

	mutex    sync.Mutex
	statuses map[string]healthpb.HealthCheckResponse_ServingStatus
	isDown   bool
	changed  chan struct{} // closed at the next change
}

// NewServer serves, as a whole.
func NewServer() *Server {
	return &Server{
		statuses: map[string]healthpb.HealthCheckResponse_ServingStatus{"": healthpb.HealthCheckResponse_SERVING},
		changed:  make(chan struct{}),
	}
}

// Check says the state of a service.
func (s *Server) Check(_ context.Context, in *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if is, known := s.statuses[in.GetService()]; known {
		return &healthpb.HealthCheckResponse{Status: is}, nil
	}
	return nil, status.Errorf(codes.NotFound, "health: there is no service %q", in.GetService())
}

// List says the states of all services.
func (s *Server) List(_ context.Context, _ *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.statuses) > listMax {
		return nil, status.Errorf(codes.ResourceExhausted, "health: %d services are too many for a list", len(s.statuses))
	}
	all := make(map[string]*healthpb.HealthCheckResponse, len(s.statuses))
	for name, is := range s.statuses {
		all[name] = &healthpb.HealthCheckResponse{Status: is}
	}
	return &healthpb.HealthListResponse{Statuses: all}, nil
}

// Watch says the state of a service, and each other one that it comes to.
func (s *Server) Watch(in *healthpb.HealthCheckRequest, stream healthgrpc.Health_WatchServer) error {
	last := healthpb.HealthCheckResponse_ServingStatus(-1)
	for {
		s.mutex.Lock()
		is, known := s.statuses[in.GetService()]
		changed := s.changed
		s.mutex.Unlock()
		if !known {
			is = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		}
		if is != last {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: is}); err != nil {
				return status.Error(codes.Canceled, "health: the watcher is gone")
			}
			last = is
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// SetServingStatus tells the state of a service; "" stands for all. Behind Shutdown it does nothing.
func (s *Server) SetServingStatus(service string, servingStatus healthpb.HealthCheckResponse_ServingStatus) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.isDown {
		s.statuses[service] = servingStatus
		s.change()
	}
}

func (s *Server) setAll(isDown bool, to healthpb.HealthCheckResponse_ServingStatus) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.isDown = isDown
	for name := range s.statuses {
		s.statuses[name] = to
	}
	s.change()
}

// Shutdown says of all services that they do not serve.
func (s *Server) Shutdown() { s.setAll(true, healthpb.HealthCheckResponse_NOT_SERVING) }

// Resume says of all services that they serve.
func (s *Server) Resume() { s.setAll(false, healthpb.HealthCheckResponse_SERVING) }
