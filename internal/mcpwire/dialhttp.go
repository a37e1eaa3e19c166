package mcpwire

import (
	"context"
	"log/slog"

	"github.com/ostiary/ostiary/internal/mcpwire/session"
	"github.com/ostiary/ostiary/internal/mcpwire/transport"
	"github.com/ostiary/ostiary/internal/provider"
)

func (u *Upstreams) dialHTTP(p *provider.Profile, log *slog.Logger) session.Dial {
	return func(_ context.Context, sink session.Sink) (transport.Carrier, error) {
		c, err := transport.NewHTTP(transport.HTTPOptions{
			URL: p.HTTP.URL, Headers: p.HTTP.Headers, Credential: p.HTTP.Credential,
			AllowRedirects: p.HTTP.AllowRedirects, AllowPrivateNet: p.HTTP.AllowPrivateNet,
			MaxMessage: p.Limits.Message, MaxResponseHeader: p.Limits.ResponseHeader,
			CloseTimeout: p.Limits.Close, Logger: log, Now: u.o.Now,
			OnNotification: sink.Notification, OnRequest: sink.Request,
		})
		if err != nil {
			return nil, err // not c: a nil pointer in an interface is no nil
		}
		return c, nil
	}
}
