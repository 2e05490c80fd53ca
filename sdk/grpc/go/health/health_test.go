package health

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

func TestHealth(t *testing.T) {
	s := NewServer()
	check := func(service string) healthpb.HealthCheckResponse_ServingStatus {
		reply, err := s.Check(context.Background(), &healthpb.HealthCheckRequest{Service: service})
		if status.Code(err) == codes.NotFound {
			return healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		}
		return reply.GetStatus()
	}
	if check("") != healthpb.HealthCheckResponse_SERVING || check("a") != healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Error(check(""), check("a"))
	}
	s.SetServingStatus("a", healthpb.HealthCheckResponse_SERVING)
	s.Shutdown()
	s.SetServingStatus("a", healthpb.HealthCheckResponse_SERVING)
	if check("a") != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Error(check("a"))
	}
	s.Resume()
	if list, err := s.List(context.Background(), nil); err != nil || len(list.Statuses) != 2 || list.Statuses["a"].Status != healthpb.HealthCheckResponse_SERVING {
		t.Error(list, err)
	}
}
