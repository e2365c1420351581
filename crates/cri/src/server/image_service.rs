//! The calls on images, answered by a Runtime.

use oarsman_cri_types::v1 as cri;

use super::implement;
use crate::InfoTarget;
use crate::wire::image_service_server::ImageService;

implement! { ImageService {
    fn list_images(self, request: cri::ListImagesRequest) -> cri::ListImagesResponse {
        let images = self.runtime.list_images(request.filter).await?;
        cri::ListImagesResponse { images }
    }

    fn image_status(self, request: cri::ImageStatusRequest) -> cri::ImageStatusResponse {
        let spec = request.image.unwrap_or_default();
        let about = InfoTarget::Image(&spec.image);
        let image = self.runtime.image_status(spec.clone()).await?;
        let info = self.info_if(request.verbose && image.is_some(), about).await?;
        cri::ImageStatusResponse { image, info }
    }

    fn pull_image(self, request: cri::PullImageRequest) -> cri::PullImageResponse {
        let image_ref = self.runtime.pull_image(request).await?;
        cri::PullImageResponse { image_ref }
    }

    fn remove_image(self, request: cri::RemoveImageRequest) -> cri::RemoveImageResponse {
        self.runtime.remove_image(request.image.unwrap_or_default()).await?;
        cri::RemoveImageResponse {}
    }

    fn image_fs_info(self, _request: cri::ImageFsInfoRequest) -> cri::ImageFsInfoResponse {
        self.runtime.image_fs_info().await?
    }
} streams {
    fn stream_images(self, request: cri::StreamImagesRequest) -> cri::StreamImagesResponse {
        let images = self.runtime.list_images(request.filter).await?;
        (images, |images| cri::StreamImagesResponse { images })
    }
} }
