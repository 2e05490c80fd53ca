// The consumer says how much it got. It is an ordinary gRPC server.
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	"consumer/pb"
)

type server struct{ pb.UnimplementedConsumerServer }

func (server) Consume(_ context.Context, request *pb.ConsumeRequest) (*pb.ConsumeReply, error) {
	reply := &pb.ConsumeReply{Ok: true, Bytes: uint32(len(request.Value))}
	for _, one := range request.Value {
		reply.Sum += uint32(one)
	}
	return reply, nil
}

func main() {
	address := flag.String("listen", "localhost:50052", "where to serve")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterConsumerServer(s, server{})
	reflection.Register(s)
	if err := s.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
