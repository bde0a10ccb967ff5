//! An axum application over HTTP/3, HTTP/2 and HTTP/1.1: `cargo run -p marline-http --example axum -- 127.0.0.1:4433`, then
//! `marline get https://localhost:4433/hello/you --insecure`.

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Path;
use axum::http::Request;
use axum::routing::{get, post};
use marline_http::Body;
use marline_http::server::{Identity, Server, ServerConfig, Site};
use tower::ServiceExt;

async fn hello(Path(name): Path<String>) -> String {
    format!("hello {name}\n")
}

fn site() -> Site {
    let router: Router = Router::new()
        .route("/hello/{name}", get(hello))
        .route("/echo", post(async |body: String| body));
    // Any tower service fits that answers requests and never fails.
    let service =
        ServiceExt::<Request<Body>>::map_response(router, |response| response.map(Body::new));
    Site::new(service)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listen: SocketAddr = match std::env::args().nth(1) {
        Some(listen) => listen.parse()?,
        None => ([127, 0, 0, 1], 4433).into(),
    };
    // For development; `Identity::from_pem_files` reads a certificate and its key.
    let identity = Identity::self_signed(vec!["localhost".to_owned(), listen.ip().to_string()])?;
    let server = Server::bind(ServerConfig::new(listen, identity, site())).await?;
    println!("listening on https://{}", server.local_addr());
    server.run().await?;
    Ok(())
}
