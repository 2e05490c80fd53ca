// Recommendation knows what goes with products: what shares most categories with them.
package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"shop/internal/service"
	"shop/pb"
)

// productsMax limits the products of a request.
const productsMax = 100

type server struct {
	pb.UnimplementedRecommendationServer
	catalogue pb.CatalogueClient
}

func (s *server) Recommend(ctx context.Context, request *pb.RecommendRequest) (*pb.Recommended, error) {
	if len(request.Products) > productsMax {
		return nil, status.Errorf(codes.InvalidArgument, "%d products are more than %d", len(request.Products), productsMax)
	}
	bought, err := each(request.Products, func(id string) (*pb.Product, error) {
		return s.catalogue.Get(ctx, &pb.GetProductRequest{Id: id})
	})
	if err != nil {
		return nil, err
	}
	var categories []string
	for _, product := range bought {
		categories = append(categories, product.Categories...)
	}
	slices.Sort(categories)
	lists, err := each(slices.Compact(categories), func(category string) ([]*pb.Product, error) { return s.list(ctx, category) })
	if err != nil {
		return nil, err
	}
	return &pb.Recommended{Products: ranked(bought, lists, int(request.CountMax))}, nil
}

func (s *server) list(ctx context.Context, category string) ([]*pb.Product, error) {
	stream, err := s.catalogue.List(ctx, &pb.ListRequest{Category: category})
	if err != nil {
		return nil, err
	}
	var all []*pb.Product
	for {
		product, err := stream.Recv()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, product)
	}
}

// each asks for several things at the same time. It returns them in their order, or the first error.
func each[A, B any](all []A, ask func(A) (B, error)) ([]B, error) {
	replies, errs := make([]B, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Add(1)
		go func() {
			defer group.Done()
			replies[i], errs[i] = ask(one)
		}()
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// ranked returns the products that are in most of the lists, without those that were bought.
func ranked(bought []*pb.Product, lists [][]*pb.Product, countMax int) []*pb.Product {
	counts := map[string]int{}
	var all []*pb.Product
	for _, product := range slices.Concat(lists...) {
		if slices.ContainsFunc(bought, func(one *pb.Product) bool { return one.Id == product.Id }) {
			continue
		}
		if counts[product.Id]++; counts[product.Id] == 1 {
			all = append(all, product)
		}
	}
	slices.SortStableFunc(all, func(a, b *pb.Product) int {
		return cmp.Or(cmp.Compare(counts[b.Id], counts[a.Id]), cmp.Compare(a.Id, b.Id))
	})
	return all[:min(countMax, len(all))]
}

func main() {
	conn, err := service.Dial("CATALOGUE", 50051)
	if err != nil {
		slog.Error("cannot dial", "error", err)
		os.Exit(1)
	}
	recommendation := &server{catalogue: pb.NewCatalogueClient(conn)}
	service.Run(50057, func(registrar grpc.ServiceRegistrar) { pb.RegisterRecommendationServer(registrar, recommendation) })
}
