// Package service runs a gRPC server: where it listens, what it logs, and what its calls pass on.
package service

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// Run serves until the process is told to end. It listens where LISTEN in the environment says, or on that port of the loopback interface.
func Run(port int, register func(grpc.ServiceRegistrar)) {
	if err := run(port, register); err != nil {
		slog.Error("cannot serve", "error", err)
		os.Exit(1)
	}
}

func run(port int, register func(grpc.ServiceRegistrar)) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(variable("LOG", "info"))); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))

	listener, err := net.Listen("tcp", variable("LISTEN", loopback(port)))
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(logUnary), grpc.ChainStreamInterceptor(logStream))
	register(server)
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		server.GracefulStop()
	}()
	return server.Serve(listener)
}

// Dial connects to another service when it is first called. Its address is in that variable of the environment, or that port of the loopback interface.
func Dial(name string, port int) (*grpc.ClientConn, error) {
	return grpc.NewClient(variable(name, loopback(port)),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(passOnUnary),
		grpc.WithChainStreamInterceptor(passOnStream))
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

func variable(name, otherwise string) string {
	if value, ok := os.LookupEnv(name); ok {
		return value
	}
	return otherwise
}
