// Client asks the server at its first argument for each scenario of the others.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"scenarios/pb"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

func main() {
	conn, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	c := pb.NewScenariosClient(conn)
	for _, a := range os.Args[2:] {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		t := time.Now()
		if a == "ticks" || a == "bidi!" {
			st, err := c.Both(ctx)
			if err != nil {
				log.Fatal(err)
			}
			st.Send(&pb.Message{Text: []byte(a)})
			n := 1
			if a == "ticks" {
				n = 5
			}
			for range n {
				r, err := st.Recv()
				fmt.Printf("%s: %s %v %v\n", a, r.GetText(), err, time.Since(t))
			}
			st.CloseSend()
			for {
				_, err := st.Recv()
				if err != nil {
					fmt.Println("end:", err, time.Since(t))
					break
				}
			}
			cancel()
			continue
		}
		var h, tr metadata.MD
		r, err := c.Unary(ctx, &pb.Message{Text: []byte(a)}, grpc.Header(&h), grpc.Trailer(&tr))
		b := r.GetText()
		if len(b) > 200 {
			b = b[:200]
		}
		fmt.Printf("%s -> %s %v %v [%v]\n", a, b, err, tr, time.Since(t))
		cancel()
	}
}
