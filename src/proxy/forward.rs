//! The writing half of a stream that is wrapped: wrappers change what is read.

/// Passes the methods of `AsyncWrite` on to a field; a wrapper that ends in its own way writes `poll_shutdown` itself.
macro_rules! forward_writes {
    ($stream:ident) => {
        crate::proxy::forward::forward_writes!($stream, but not poll_shutdown);

        fn poll_shutdown(
            self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::pin::Pin::new(&mut self.get_mut().$stream).poll_shutdown(cx)
        }
    };
    ($stream:ident, but not poll_shutdown) => {
        fn poll_write(
            self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
            bytes: &[u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            std::pin::Pin::new(&mut self.get_mut().$stream).poll_write(cx, bytes)
        }

        fn poll_write_vectored(
            self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
            slices: &[std::io::IoSlice<'_>],
        ) -> std::task::Poll<std::io::Result<usize>> {
            std::pin::Pin::new(&mut self.get_mut().$stream).poll_write_vectored(cx, slices)
        }

        fn is_write_vectored(&self) -> bool {
            self.$stream.is_write_vectored()
        }

        fn poll_flush(
            self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::pin::Pin::new(&mut self.get_mut().$stream).poll_flush(cx)
        }
    };
}

pub(in crate::proxy) use forward_writes;
