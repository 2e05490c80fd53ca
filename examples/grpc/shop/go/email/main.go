// Email writes to customers. There is no mail server behind it: what would be sent goes to the log.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/mail"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"shop/internal/money"
	"shop/internal/service"
	"shop/pb"
)

type server struct{ pb.UnimplementedEmailServer }

func (server) Confirm(ctx context.Context, request *pb.ConfirmRequest) (*emptypb.Empty, error) {
	to, err := mail.ParseAddress(request.GetTo())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "to: %v", err)
	}
	text := confirmation(request)
	slog.InfoContext(ctx, "mail", "to", to.Address, "order", request.GetOrder().GetId(), "bytes", len(text))
	slog.DebugContext(ctx, "mail", "text", text)
	return &emptypb.Empty{}, nil
}

// confirmation is the text of a mail.
func confirmation(request *pb.ConfirmRequest) string {
	order := request.GetOrder()
	var text strings.Builder
	fmt.Fprintf(&text, "Thank you for your order %s.\n\n", order.GetId())
	for _, line := range order.GetLines() {
		fmt.Fprintf(&text, "%4d x %-24s %16s\n", line.GetQuantity(), line.GetProduct().GetName(), money.Format(line.GetCost()))
	}
	fmt.Fprintf(&text, "       %-24s %16s\n", "Shipping", money.Format(order.GetShipping()))
	fmt.Fprintf(&text, "       %-24s %16s\n\n", "Total", money.Format(order.GetTotal()))
	fmt.Fprintf(&text, "It is on its way to %s; the parcel's number is %s.\n", order.GetAddress().GetCity(), order.GetTracking())
	if len(request.GetAlsoLike()) > 0 {
		text.WriteString("\nOthers also bought:\n")
	}
	for _, product := range request.GetAlsoLike() {
		fmt.Fprintf(&text, "  %s, %s\n", product.GetName(), money.Format(product.GetPrice()))
	}
	return text.String()
}

func main() {
	service.Run(50056, func(registrar grpc.ServiceRegistrar) { pb.RegisterEmailServer(registrar, server{}) })
}
