package main

import (
	"slices"
	"testing"

	"shop/pb"
)

func TestRanked(t *testing.T) {
	products := func(ids ...string) (all []*pb.Product) {
		for _, id := range ids {
			all = append(all, &pb.Product{Id: id})
		}
		return
	}
	lists := [][]*pb.Product{products("mug", "teapot", "candle"), products("kettle", "teapot")}
	for count, expected := range [][]string{{}, {"teapot"}, {"teapot", "candle"}, {"teapot", "candle", "kettle"}, {"teapot", "candle", "kettle"}} {
		var ids []string
		for _, product := range ranked(products("mug"), lists, count) {
			ids = append(ids, product.Id)
		}
		if !slices.Equal(ids, expected) {
			t.Errorf("%d: %v", count, ids)
		}
	}
}
