package main

import (
	"context"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"shop/pb"
)

func TestCharge(t *testing.T) {
	payment := &server{now: func() time.Time { return time.Date(2026, time.May, 31, 0, 0, 0, 0, time.UTC) }}
	for _, one := range []struct {
		number      string
		year, month int32
		nanos       int32
		code        codes.Code
		reason      string
	}{
		{"4242424242424242", 2026, 5, 1, codes.OK, ""},
		{"4242424242424242", 2026, 4, 1, codes.FailedPrecondition, "CARD_EXPIRED"},
		{"4000000000000002", 2027, 1, 1, codes.FailedPrecondition, "CARD_DECLINED"},
		{"4242424242424241", 2027, 1, 1, codes.InvalidArgument, ""},
		{"4242-4242-4242", 2027, 1, 1, codes.InvalidArgument, ""},
		{"", 2027, 1, 1, codes.InvalidArgument, ""},
		{"4242424242424242", 2027, 1, 0, codes.InvalidArgument, ""},
	} {
		card := &pb.Card{Number: one.number, Year: one.year, Month: one.month}
		_, err := payment.Charge(context.Background(), &pb.ChargeRequest{Amount: &pb.Money{Currency: "EUR", Nanos: one.nanos}, Card: card})
		found := status.Convert(err)
		reason := ""
		for _, detail := range found.Details() {
			if info, ok := detail.(*errdetails.ErrorInfo); ok {
				reason = info.Reason
			}
		}
		if found.Code() != one.code || reason != one.reason {
			t.Errorf("%+v: %v %q", one, err, reason)
		}
	}
}
