package sqlstore

import (
	"errors"
	"fmt"
	"time"
)

// closePatience is how long Close waits for a disk that does not answer.
const closePatience = 10 * time.Second

// Close implements store.Store. If the disk does not answer it gives up waiting; the data directory stays locked then.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	close(s.closing)
	s.mu.Lock()
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-s.finished:
	case <-patience.C:
		return fmt.Errorf("close store %s: %w", s.o.Dir, unavailable("the disk does not answer"))
	}
	var errs []error
	if s.lost > 0 {
		errs = append(errs, unavailable("%d enqueued transactions were not written", s.lost))
	}
	errs = append(errs, s.readers.Close(), s.state.held.committed.Close())
	if !s.fatal {
		if err := s.conn.truncate.exec(); err != nil && !passing(err) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, s.conn.close(), s.lock.release())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %s: %w", s.o.Dir, err)
	}
	return nil
}
