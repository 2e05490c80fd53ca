// Payment charges cards. There is no bank behind it: which cards are declined is written here.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"shop/internal/money"
	"shop/internal/service"
	"shop/pb"
)

// declined are numbers that are well-formed and have no money.
var declined = map[string]bool{"4000000000000002": true}

type server struct {
	pb.UnimplementedPaymentServer
	now func() time.Time
}

func (s *server) Charge(ctx context.Context, request *pb.ChargeRequest) (*pb.Charged, error) {
	card, amount := request.GetCard(), request.GetAmount()
	if amount.GetUnits() < 0 || amount.GetNanos() < 0 || amount.GetUnits() == 0 && amount.GetNanos() == 0 {
		return nil, status.Errorf(codes.InvalidArgument, "%s cannot be charged", money.Format(amount))
	}
	if !isCardNumber(card.GetNumber()) {
		return nil, invalid("card.number", "is no number of a card")
	}
	if now := s.now(); int(card.GetYear()) < now.Year() || int(card.GetYear()) == now.Year() && int(card.GetMonth()) < int(now.Month()) {
		return nil, refused("CARD_EXPIRED", "the card has expired", card)
	}
	if declined[card.GetNumber()] {
		return nil, refused("CARD_DECLINED", "the card was declined", card)
	}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	transaction := hex.EncodeToString(id[:])
	slog.InfoContext(ctx, "charged", "amount", money.Format(amount), "card", lastFour(card), "transaction", transaction)
	return &pb.Charged{Transaction: transaction}, nil
}

func (s *server) Refund(ctx context.Context, request *pb.RefundRequest) (*emptypb.Empty, error) {
	if id, err := hex.DecodeString(request.GetTransaction()); err != nil || len(id) != 8 {
		return nil, status.Errorf(codes.NotFound, "no transaction %q", request.GetTransaction())
	}
	slog.InfoContext(ctx, "refunded", "transaction", request.GetTransaction())
	return &emptypb.Empty{}, nil
}

// isCardNumber checks the digits by their sum (ISO/IEC 7812-1, annex B).
func isCardNumber(number string) bool {
	if len(number) < 12 || len(number) > 19 {
		return false
	}
	sum := 0
	for i := range len(number) {
		digit := int(number[len(number)-1-i]) - '0'
		if digit < 0 || digit > 9 {
			return false
		}
		if i%2 == 1 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}

func lastFour(card *pb.Card) string {
	return card.GetNumber()[len(card.GetNumber())-4:]
}

func invalid(field, why string) error {
	violation := &errdetails.BadRequest_FieldViolation{Field: field, Description: why}
	failed := status.Newf(codes.InvalidArgument, "%s: %s", field, why)
	if detailed, err := failed.WithDetails(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{violation}}); err == nil {
		failed = detailed
	}
	return failed.Err()
}

func refused(reason, why string, card *pb.Card) error {
	failed := status.New(codes.FailedPrecondition, why)
	info := &errdetails.ErrorInfo{Reason: reason, Domain: "payment.shop", Metadata: map[string]string{"card": lastFour(card)}}
	if detailed, err := failed.WithDetails(info); err == nil {
		failed = detailed
	}
	return failed.Err()
}

func main() {
	service.Run(50055, func(registrar grpc.ServiceRegistrar) { pb.RegisterPaymentServer(registrar, &server{now: time.Now}) })
}
