// The conformance suite's service for grpc-go, behind an ordinary server: `sledge build` makes a function of it. scripts/test-connect puts it beside
// the suite's own implementation of the service.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"strconv"

	conformancev1 "connectrpc.com/conformance/internal/gen/proto/go/connectrpc/conformance/v1"
	"connectrpc.com/conformance/internal/grpcutil"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/anypb"
)

// IdempotentUnary is what Unary is. The suite's implementation for grpc-go does not have it: only Connect calls it otherwise, with GET.
func (c *conformanceServiceServer) IdempotentUnary(
	ctx context.Context, req *conformancev1.IdempotentUnaryRequest,
) (*conformancev1.IdempotentUnaryResponse, error) {
	asked, err := asAny(req)
	if err != nil {
		return nil, err
	}
	if definition := req.ResponseDefinition; definition != nil {
		if err := grpc.SetHeader(ctx, grpcutil.ConvertProtoHeaderToMetadata(definition.ResponseHeaders)); err != nil {
			return nil, err
		}
		if err := grpc.SetTrailer(ctx, grpcutil.ConvertProtoHeaderToMetadata(definition.ResponseTrailers)); err != nil {
			return nil, err
		}
	}
	incoming, _ := metadata.FromIncomingContext(ctx)
	payload, err := parseUnaryResponseDefinition(ctx, req.ResponseDefinition, incoming, []*anypb.Any{asked})
	if err != nil {
		return nil, err
	}
	return &conformancev1.IdempotentUnaryResponse{Payload: payload}, nil
}

func main() {
	limit, err := strconv.Atoi(os.Getenv("LIMIT"))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(limit))
	conformancev1.RegisterConformanceServiceServer(server, NewConformanceServiceServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.Serve(listener))
}
