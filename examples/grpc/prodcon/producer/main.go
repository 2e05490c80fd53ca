// The producer sends messages to the consumer when it is asked to. It is an ordinary gRPC server, and client of another.
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"producer/pb"
)

// The largest message, so that it fits the consumer's default limit.
const sizeMax = 1 << 20

type server struct {
	pb.UnimplementedProducerServer
	address  string
	consumer pb.ConsumerClient // none: each call dials
}

func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func (s *server) Produce(ctx context.Context, request *pb.ProduceRequest) (*pb.ProduceReply, error) {
	if request.Size > sizeMax {
		return nil, status.Errorf(codes.InvalidArgument, "size %d is above %d", request.Size, sizeMax)
	}
	value := make([]byte, request.Size)
	for i := range value {
		value[i] = byte(i)
	}
	reply := &pb.ProduceReply{}
	for range request.Count {
		one, err := s.consume(ctx, value)
		if err != nil {
			return nil, err
		}
		reply.Count++
		reply.Bytes += uint64(one.Bytes)
		reply.Sum += uint64(one.Sum)
	}
	return reply, nil
}

func (s *server) consume(ctx context.Context, value []byte) (*pb.ConsumeReply, error) {
	request := &pb.ConsumeRequest{Value: value}
	if s.consumer != nil {
		return s.consumer.Consume(ctx, request)
	}
	conn, err := dial(s.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return pb.NewConsumerClient(conn).Consume(ctx, request)
}

func main() {
	address := flag.String("listen", "localhost:50051", "where to serve")
	consumer := flag.String("consumer", "localhost:50052", "where the consumer serves")
	each := flag.Bool("dial", false, "dial for each message, as the producer of the paper does")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	producer := &server{address: *consumer}
	if !*each {
		conn, err := dial(*consumer)
		if err != nil {
			log.Fatal(err)
		}
		defer conn.Close()
		producer.consumer = pb.NewConsumerClient(conn)
	}
	s := grpc.NewServer()
	pb.RegisterProducerServer(s, producer)
	reflection.Register(s)
	if err := s.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
