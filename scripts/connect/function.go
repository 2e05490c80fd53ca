// The conformance suite's service for grpc-go, behind an ordinary server: `sledge build` makes a function of it. scripts/test-connect puts it beside
// the suite's own implementation of the service.
package main

import (
	"log"
	"net"
	"os"
	"strconv"

	conformancev1 "connectrpc.com/conformance/internal/gen/proto/go/connectrpc/conformance/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
)

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
