package mcpraw

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// closeTime is how long a child may take to end after its input has.
const closeTime = 10 * time.Second

// Stdio starts a server as a child and is a client of it. The child's environment is the command's.
func Stdio(cmd *exec.Cmd) (*Client, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	c := &Client{}
	p := &stdioConn{cmd: cmd, in: in, lines: make(chan Message, 1024), ended: make(chan struct{}), noise: &c.Noise}
	go p.read(out)
	c.conn = p
	return c, nil
}

type stdioConn struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan Message
	ended chan struct{} // closed when the output has
	noise *int
}

func (c *stdioConn) opened(string) {}

func (c *stdioConn) read(out io.Reader) {
	defer close(c.ended)
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, maxBody)
	for sc.Scan() {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		m, err := parseMessage(bytes.Clone(line))
		if err != nil {
			*c.noise++
			continue
		}
		c.lines <- m
	}
}

func (c *stdioConn) notify(_ context.Context, body []byte) error {
	_, err := c.in.Write(append(body, '\n'))
	return err
}

func (c *stdioConn) roundTrip(ctx context.Context, r request, heard func(Message)) (Message, error) {
	if err := c.notify(ctx, r.body); err != nil {
		return Message{}, err
	}
	for {
		select {
		case <-ctx.Done():
			return Message{}, ctx.Err()
		case m := <-c.lines:
			switch {
			case m.Method == "" && string(m.Object["id"]) == r.id:
				return m, nil
			case m.Method != "" && m.Object["id"] != nil:
				if err := c.notify(ctx, declined(m)); err != nil {
					return Message{}, err
				}
			case m.Method != "":
				heard(m)
			}
		case <-c.ended:
			if len(c.lines) == 0 {
				return Message{}, errors.New("the server has ended")
			}
		}
	}
}

// close asks the child to end by closing its input, and ends it if it does not.
func (c *stdioConn) close() error {
	_ = c.in.Close()
	late := time.AfterFunc(closeTime, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	drained := make(chan struct{})
	go func() {
		for {
			select {
			case <-c.lines:
			case <-c.ended:
				close(drained)
				return
			}
		}
	}()
	<-drained
	return c.cmd.Wait()
}
