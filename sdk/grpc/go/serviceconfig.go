package grpc

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/serviceconfig"
)

// MethodConfig is a method's part of a service configuration.
type MethodConfig struct {
	WaitForReady *bool
	Timeout      *time.Duration
	MaxReqSize   *int
	MaxRespSize  *int
	RetryPolicy  *RetryPolicy // none: the host repeats calls
}

// RetryPolicy says how a call is repeated.
type RetryPolicy struct {
	MaxAttempts          int
	InitialBackoff       time.Duration
	MaxBackoff           time.Duration
	BackoffMultiplier    float64
	RetryableStatusCodes map[codes.Code]bool
}

// ServiceConfig is a service configuration.
//
// Deprecated: programs should not look into it.
type ServiceConfig struct {
	serviceconfig.Config
	LB      *string
	Methods map[string]MethodConfig
}

// methodConfig is one with the paths, or beginnings of paths, that it is for.
type methodConfig struct {
	paths  []string
	config MethodConfig
}

func parseServiceConfig(text string) ([]methodConfig, error) {
	var parsed struct {
		MethodConfig []struct {
			Name                                            []struct{ Service, Method string }
			WaitForReady                                    *bool
			Timeout                                         *string
			MaxRequestMessageBytes, MaxResponseMessageBytes json.Number
		}
	}
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		return nil, fmt.Errorf("grpc: the default service config: %w", err)
	}
	var all []methodConfig
	for _, one := range parsed.MethodConfig {
		method := methodConfig{config: MethodConfig{WaitForReady: one.WaitForReady}}
		for _, name := range one.Name {
			path := "/"
			if name.Service != "" {
				path += name.Service + "/" + name.Method
			}
			method.paths = append(method.paths, path)
		}
		if one.Timeout != nil {
			timeout, err := time.ParseDuration(*one.Timeout)
			if err != nil || !strings.HasSuffix(*one.Timeout, "s") {
				return nil, fmt.Errorf("grpc: the default service config has the timeout %q", *one.Timeout)
			}
			method.config.Timeout = &timeout
		}
		method.config.MaxReqSize, method.config.MaxRespSize = number(one.MaxRequestMessageBytes), number(one.MaxResponseMessageBytes)
		all = append(all, method)
	}
	return all, nil
}

func number(text json.Number) *int {
	if result, err := strconv.Atoi(text.String()); err == nil {
		return &result
	}
	return nil
}

// findConfig looks for the method, then its service, then all.
func findConfig(all []methodConfig, path string) MethodConfig {
	service := path[:strings.LastIndexByte(path, '/')+1]
	for _, wanted := range [3]string{path, service, "/"} {
		for _, one := range all {
			for _, has := range one.paths {
				if has == wanted {
					return one.config
				}
			}
		}
	}
	return MethodConfig{}
}
