//go:build unix

package main

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// authProxy adds the bearer token to every request and leaves everything else, the Host header too, as it is.
type authProxy struct {
	ln  net.Listener
	srv *http.Server
}

// listenAuthProxy takes a port. What is sent to it waits until serve has been called.
func listenAuthProxy() (*authProxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	return &authProxy{ln: ln}, err
}

// origin is what the proxy is called by those who use it.
func (p *authProxy) origin() string {
	_, port, _ := net.SplitHostPort(p.ln.Addr().String())
	return "http://localhost:" + port
}

func (p *authProxy) serve(target string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // clients of the suite leave their streams without a word
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	p.srv = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A body that is streamed through can cut off an answer that comes before its end has been read.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	})}
	go p.srv.Serve(p.ln)
	return nil
}

func (p *authProxy) close() {
	if p.srv != nil {
		_ = p.srv.Close()
	} else {
		_ = p.ln.Close()
	}
}
