// Scenarios does what its messages ask for, as a function of an application that calls itself under another name: what goes wrong there and here, what
// overlaps, all streams. The service scenarios.Scenarios is called by the one that a client asks with "run ...".
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"time"

	"scenarios/pb"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type server struct {
	pb.UnimplementedScenariosServer
	c pb.ScenariosClient
}

func of(s string) *pb.Message { return &pb.Message{Text: []byte(s)} }

func (s *server) Unary(ctx context.Context, in *pb.Message) (*pb.Message, error) {
	text := string(in.Text)
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "sleep":
		d, _ := time.ParseDuration(rest)
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return in, nil
	case "panic":
		panic("on purpose")
	case "fail":
		return nil, status.Error(codes.FailedPrecondition, "wörld %")
	case "print":
		fmt.Println("printed")
		return in, nil
	case "deadline":
		d, ok := ctx.Deadline()
		return of(fmt.Sprint(ok, " ", time.Until(d).Round(time.Second))), nil
	case "run":
		t := time.Now()
		out, err := s.run(ctx, rest)
		if err != nil {
			return of(fmt.Sprintf("%s: ERROR %v (%v)", rest, err, time.Since(t))), nil
		}
		return of(fmt.Sprintf("%s: %s (%v)", rest, out, time.Since(t))), nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	grpc.SetHeader(ctx, metadata.Pairs("h", "1"))
	grpc.SetTrailer(ctx, metadata.Pairs("t-bin", "\x00"))
	if len(md.Get("x")) > 0 {
		return of(fmt.Sprint(md.Get("x"), md.Get("content-type"))), nil
	}
	return in, nil
}

func (s *server) run(ctx context.Context, what string) (string, error) {
	word, rest, _ := strings.Cut(what, " ")
	switch word {
	case "u":
		ctx = metadata.AppendToOutgoingContext(ctx, "x", "y")
		var h, t metadata.MD
		r, err := s.c.Unary(ctx, of(rest), grpc.Header(&h), grpc.Trailer(&t))
		return fmt.Sprintf("%s %v %v", r.GetText(), h, t), err
	case "loop":
		n := 0
		fmt.Sscan(rest, &n)
		in := &pb.Message{Text: make([]byte, 1024)}
		t := time.Now()
		for range n {
			if _, err := s.c.Unary(ctx, in); err != nil {
				return "", err
			}
		}
		return fmt.Sprint(time.Since(t) / time.Duration(max(n, 1))), nil
	case "overlap":
		ch := make(chan error)
		for range 2 {
			go func() { _, err := s.c.Unary(ctx, of("sleep 10ms")); ch <- err }()
		}
		err1 := <-ch
		err2 := <-ch
		return fmt.Sprint(err1, err2), nil
	case "cancel":
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := s.c.Unary(ctx, of("sleep 1s"))
		return "", err
	case "timeout":
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err := s.c.Unary(ctx, of("sleep 1s"))
		return "", err
	case "gzip":
		r, err := s.c.Unary(ctx, of(strings.Repeat("g", 10000)), grpc.UseCompressor(gzip.Name))
		return fmt.Sprint(len(r.GetText())), err
	case "big":
		r, err := s.c.Unary(ctx, &pb.Message{Text: make([]byte, 3<<20)})
		return fmt.Sprint(len(r.GetText())), err
	case "bidi":
		st, err := s.c.Both(ctx)
		if err != nil {
			return "", err
		}
		for i := range 10 {
			if err := st.Send(of(fmt.Sprint(i))); err != nil {
				return "", err
			}
			r, err := st.Recv()
			if err != nil || string(r.Text) != fmt.Sprint(i) {
				return "", fmt.Errorf("%v %w", r, err)
			}
		}
		st.CloseSend()
		_, err = st.Recv()
		return fmt.Sprint(err), nil
	case "flood":
		st, err := s.c.Both(ctx)
		if err != nil {
			return "", err
		}
		go func() {
			for range 200 {
				if err := st.Send(of(strings.Repeat("f", 10000))); err != nil {
					log.Println(err)
				}
			}
			st.CloseSend()
		}()
		n := 0
		for {
			r, err := st.Recv()
			if err == io.EOF {
				return fmt.Sprint(n), nil
			}
			if err != nil {
				return "", err
			}
			n += len(r.Text)
		}
	case "server":
		st, err := s.c.Down(ctx, of("5"))
		if err != nil {
			return "", err
		}
		n := 0
		for {
			if _, err := st.Recv(); err == io.EOF {
				return fmt.Sprint(n), nil
			} else if err != nil {
				return "", err
			}
			n++
		}
	case "client":
		st, err := s.c.Up(ctx)
		if err != nil {
			return "", err
		}
		for range 5 {
			st.Send(of("abc"))
		}
		r, err := st.CloseAndRecv()
		return string(r.GetText()), err
	case "streamcancel":
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		st, err := s.c.Both(ctx)
		if err != nil {
			return "", err
		}
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err = st.Recv()
		return "", err
	case "health":
		_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return "", err
	}
	return "", status.Error(codes.NotFound, what)
}

func (s *server) Up(st grpc.ClientStreamingServer[pb.Message, pb.Message]) error {
	n := 0
	for {
		r, err := st.Recv()
		if err == io.EOF {
			return st.SendAndClose(of(fmt.Sprint(n)))
		}
		if err != nil {
			return err
		}
		n += len(r.Text)
	}
}

func (s *server) Down(in *pb.Message, st grpc.ServerStreamingServer[pb.Message]) error {
	n := 0
	fmt.Sscan(string(in.Text), &n)
	for i := range n {
		if err := st.Send(of(fmt.Sprint(i))); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (s *server) Both(st grpc.BidiStreamingServer[pb.Message, pb.Message]) error {
	first := true
	for {
		r, err := st.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if first && string(r.Text) == "ticks" {
			// Sends while nothing comes.
			go func() {
				for range 1000 {
					time.Sleep(5 * time.Millisecond)
					if st.Send(of("tick")) != nil {
						return
					}
				}
			}()
			first = false
			continue
		}
		first = false
		if err := st.Send(r); err != nil {
			return err
		}
	}
}

var conn *grpc.ClientConn

func main() {
	lis, err := net.Listen("tcp", "localhost:50061")
	if err != nil {
		log.Fatal(err)
	}
	conn, err = grpc.NewClient("s.example:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterScenariosServer(s, &server{c: pb.NewScenariosClient(conn)})
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	go func() {
		for range time.Tick(time.Hour) {
		}
	}()
	log.Fatal(s.Serve(lis))
}
