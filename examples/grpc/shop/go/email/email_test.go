package main

import (
	"testing"

	"shop/pb"
)

func TestConfirmation(t *testing.T) {
	euros := func(units int64, nanos int32) *pb.Money {
		return &pb.Money{Currency: "EUR", Units: units, Nanos: nanos}
	}
	order := &pb.Order{
		Id:       "17",
		Lines:    []*pb.OrderLine{{Product: &pb.Product{Name: "Mug"}, Quantity: 2, Cost: euros(17, 900_000_000)}},
		Shipping: euros(4, 400_000_000),
		Total:    euros(22, 300_000_000),
		Tracking: "abc",
		Address:  &pb.Address{City: "Bonn"},
	}
	expected := `Thank you for your order 17.

   2 x Mug                             17.90 EUR
       Shipping                         4.40 EUR
       Total                           22.30 EUR

It is on its way to Bonn; the parcel's number is abc.

Others also bought:
  Plate, 11.20 EUR
`
	plate := &pb.Product{Name: "Plate", Price: euros(11, 200_000_000)}
	if text := confirmation(&pb.ConfirmRequest{Order: order, AlsoLike: []*pb.Product{plate}}); text != expected {
		t.Errorf("%s", text)
	}
}
