// Cart keeps what users have chosen.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"shop/internal/service"
	"shop/pb"
)

const (
	quantityMax = 1_000
	// itemsMax limits the products of a cart.
	itemsMax = 100
)

// errTooLarge says that a cart would have more than it may have.
var errTooLarge = errors.New("the cart has no room for that")

// A store keeps carts, which are quantities by product.
type store interface {
	// add adds to the quantities of a cart, all or none, and returns the cart.
	add(ctx context.Context, user string, items map[string]uint32) (map[string]uint32, error)
	get(ctx context.Context, user string) (map[string]uint32, error)
	empty(ctx context.Context, user string) error
}

// merge adds to the quantities of a cart. Stores use it.
func merge(cart, items map[string]uint32) error {
	for product, quantity := range items {
		cart[product] += quantity
		if cart[product] > quantityMax {
			return errTooLarge
		}
	}
	if len(cart) > itemsMax {
		return errTooLarge
	}
	return nil
}

type server struct {
	pb.UnimplementedCartServer
	store store
}

func (s *server) Add(ctx context.Context, request *pb.AddRequest) (*pb.Contents, error) {
	if err := check(request); err != nil {
		return nil, err
	}
	cart, err := s.store.add(ctx, request.User, map[string]uint32{request.Item.Product: request.Item.Quantity})
	return contents(cart, err)
}

func (s *server) Fill(stream grpc.ClientStreamingServer[pb.AddRequest, pb.Contents]) error {
	var user string
	items := map[string]uint32{}
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := check(request); err != nil {
			return err
		}
		if user != "" && user != request.User {
			return status.Error(codes.InvalidArgument, "the items are for several users")
		}
		user = request.User
		if err := merge(items, map[string]uint32{request.Item.Product: request.Item.Quantity}); err != nil {
			return status.Error(codes.ResourceExhausted, err.Error())
		}
	}
	if user == "" {
		return status.Error(codes.InvalidArgument, "no items")
	}
	cart, err := contents(s.store.add(stream.Context(), user, items))
	if err != nil {
		return err
	}
	return stream.SendAndClose(cart)
}

func (s *server) Get(ctx context.Context, request *pb.GetCartRequest) (*pb.Contents, error) {
	return contents(s.store.get(ctx, request.User))
}

func (s *server) Empty(ctx context.Context, request *pb.EmptyCartRequest) (*emptypb.Empty, error) {
	if err := s.store.empty(ctx, request.User); err != nil {
		return nil, failed(err)
	}
	return &emptypb.Empty{}, nil
}

func check(request *pb.AddRequest) error {
	item := request.GetItem()
	switch {
	case request.GetUser() == "":
		return status.Error(codes.InvalidArgument, "user: is empty")
	case item.GetProduct() == "":
		return status.Error(codes.InvalidArgument, "item: no product")
	case item.GetQuantity() == 0 || item.GetQuantity() > quantityMax:
		return status.Errorf(codes.InvalidArgument, "item: quantity %d is not from 1 to %d", item.GetQuantity(), quantityMax)
	}
	return nil
}

func contents(cart map[string]uint32, err error) (*pb.Contents, error) {
	if err != nil {
		return nil, failed(err)
	}
	reply := &pb.Contents{}
	for product, quantity := range cart {
		reply.Items = append(reply.Items, &pb.Item{Product: product, Quantity: quantity})
	}
	slices.SortFunc(reply.Items, func(a, b *pb.Item) int { return strings.Compare(a.Product, b.Product) })
	return reply, nil
}

// failed is what clients learn of an error of the store.
func failed(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	}
	slog.Error("the store does not work", "error", err)
	return status.Error(codes.Unavailable, "the carts are not available")
}

func main() {
	carts, err := open()
	if err != nil {
		slog.Error("cannot open the store", "error", err)
		panic(err)
	}
	service.Run(50052, func(registrar grpc.ServiceRegistrar) { pb.RegisterCartServer(registrar, &server{store: carts}) })
}
